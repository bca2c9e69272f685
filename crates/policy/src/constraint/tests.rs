//! Tests of what each dimension denies and allows.

use super::*;
use crate::access::{ConstraintOverrides, Levels};
use belljar_contract::access::AccessLevel;
use belljar_contract::tool::ToolName;

fn constraints(said: &ConstraintOverrides) -> Constraints {
    Levels::default().of(AccessLevel::Elevated).constraints.with(said)
}

fn against(
    constraints: &Constraints,
    (name, category, action, reaches_out): (&str, Category, Leaf, bool),
    works_in: ExecutionLocation,
) -> Option<Dimension> {
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
        (("a_tool", Category::Other, Leaf::CodeRead, true), true),
        (("git_clone", git, Leaf::VcsRead, false), true),
        (("git_push", git, Leaf::VcsRead, false), true),
        (("a_tool", git, Leaf::VcsPush, false), true),
        (("a_tool", Category::Web, Leaf::ExternalDataRequest, false), true),
        (("a_tool", Category::Web, Leaf::CodeWrite, false), true),
        (("a_tool", Category::Other, Leaf::ExternalDataRequest, false), true),
        (("a_tool", Category::Other, Leaf::CommsExternal, false), true),
        // Tools that only work on existing text.
        (("a_tool", Category::Web, Leaf::CodeRead, false), false),
        (("a_tool", Category::Other, Leaf::CodeRead, false), false),
        (("a_tool", Category::Other, Leaf::CommsInternal, false), false),
        (("git_status", git, Leaf::VcsRead, false), false),
        (("git_commit", git, Leaf::VcsCommit, false), false),
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
    let run = |category| ("a_tool", category, Leaf::CodeWrite, false);
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
