//! Tests of what each dimension denies and allows.

use super::*;
use crate::access::{ConstraintOverrides, Levels};
use belljar_contract::access::AccessLevel;
use belljar_contract::tool::ToolName;

fn constraints(said: &ConstraintOverrides) -> Constraints {
    Levels::default().of(AccessLevel::Elevated).constraints.with(said)
}

/// Tool of a test: name, category, action, and whether it leaves the host.
type ToolRow<'t> = (&'t str, Category, BuiltInAction, bool);

fn against(constraints: &Constraints, tool: ToolRow<'_>, works_in: ExecutionLocation) -> Option<Dimension> {
    let (name, category, action, reaches_out) = tool;
    let (name, action) = (ToolName::parse(name).unwrap(), action.into());
    let tool = ToolFacts { name: &name, category, action: &action, reaches_out };
    check(constraints, &tool, works_in).err().map(|violation| violation.dimension)
}

#[test]
fn network_none_denies_every_tool_that_leaves_the_host() {
    let of = |network| constraints(&ConstraintOverrides { network: Some(network), ..Default::default() });
    let none = of(NetworkMode::None);
    let git = Category::VersionControl;
    for (tool, leaves) in [
        (("a_tool", Category::Other, BuiltInAction::CodeRead, true), true),
        (("git_clone", git, BuiltInAction::VcsRead, false), true),
        (("git_push", git, BuiltInAction::VcsRead, false), true),
        (("a_tool", git, BuiltInAction::VcsPush, false), true),
        (("a_tool", Category::Web, BuiltInAction::ExternalDataRequest, false), true),
        (("a_tool", Category::Web, BuiltInAction::CodeWrite, false), true),
        (("a_tool", Category::Other, BuiltInAction::ExternalDataRequest, false), true),
        (("a_tool", Category::Other, BuiltInAction::CommsExternal, false), true),
        // Tools that only work on existing text.
        (("a_tool", Category::Web, BuiltInAction::CodeRead, false), false),
        (("a_tool", Category::Other, BuiltInAction::CodeRead, false), false),
        (("a_tool", Category::Other, BuiltInAction::CommsInternal, false), false),
        (("git_status", git, BuiltInAction::VcsRead, false), false),
        (("git_commit", git, BuiltInAction::VcsCommit, false), false),
    ] {
        let expected = leaves.then_some(Dimension::Network);
        assert_eq!(against(&none, tool, ExecutionLocation::Container), expected, "{tool:?}");
        for network in [NetworkMode::AllowlistOnly, NetworkMode::Open] {
            assert_eq!(against(&of(network), tool, ExecutionLocation::Container), None, "{tool:?} {network}");
        }
    }
}

#[test]
fn containerized_code_runs_only_in_containers() {
    let of = |isolation| {
        constraints(&ConstraintOverrides { code_execution: Some(isolation), ..Default::default() })
    };
    let run = |category| ("a_tool", category, BuiltInAction::CodeWrite, false);
    for category in [Category::CodeExecution, Category::Terminal] {
        let containerized = of(CodeIsolation::Containerized);
        assert_eq!(against(&containerized, run(category), ExecutionLocation::Container), None);
        for works_in in [ExecutionLocation::Process, ExecutionLocation::Host] {
            let expected = Some(Dimension::CodeExecution);
            assert_eq!(against(&containerized, run(category), works_in), expected, "{category}");
            assert_eq!(against(&of(CodeIsolation::Process), run(category), works_in), None, "{category}");
            assert_eq!(against(&containerized, run(Category::FileSystem), works_in), None);
        }
    }
}
