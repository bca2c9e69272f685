//! Tests of the order: denied, allowed, the level's categories, nothing else.

use super::*;
use belljar_contract::action::BuiltInAction;

fn patterns(names: &[&str]) -> ToolRules {
    ToolRules::new(names.iter().map(|name| ToolPattern::parse(name).unwrap()))
}

fn check(
    permissions: &Permissions,
    name: &str,
    category: Category,
) -> Result<PermissionBasis, PermissionDenial> {
    let name = ToolName::parse(name).unwrap();
    let action = BuiltInAction::CodeRead.into();
    permissions.check(&ToolFacts { name: &name, category, action: &action, reaches_out: false })
}

fn at(level: AccessLevel) -> Permissions {
    Permissions::new(&Levels::default(), level)
}

/// Categories of each level as specified: those of the level before, and these.
#[test]
fn each_access_level_allows_exactly_its_categories() {
    use Category::{Analytics, Browser, CodeExecution, FileSystem, Memory, Terminal, VersionControl, Web};
    let sandboxed = vec![FileSystem, CodeExecution, VersionControl, Memory];
    let restricted = [sandboxed.clone(), vec![Web]].concat();
    let standard = [restricted.clone(), vec![Terminal, Analytics, Browser]].concat();
    let rows = [
        (AccessLevel::Sandboxed, sandboxed),
        (AccessLevel::Restricted, restricted),
        (AccessLevel::Standard, standard),
        (AccessLevel::Elevated, Category::ALL.to_vec()),
        (AccessLevel::Custom, Vec::new()),
    ];
    assert_eq!(rows.len(), AccessLevel::ALL.len());
    for (level, categories) in rows {
        let shown: Vec<Category> = at(level).categories().iter().copied().collect();
        assert_eq!(
            shown,
            categories.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        );
        for category in Category::ALL {
            let expected = match categories.contains(&category) {
                true => Ok(PermissionBasis::Level(level)),
                false => Err(PermissionDenial::Category { level, category }),
            };
            assert_eq!(check(&at(level), "a_tool", category), expected, "{level} {category}");
        }
    }
}

#[test]
fn denied_tool_stays_denied_despite_other_rules() {
    let permissions = at(AccessLevel::Elevated)
        .with_tools(patterns(&["git_*", "read_file"]), patterns(&["git_push", "help.*"]));
    assert_eq!(check(&permissions, "git_push", Category::VersionControl), Err(PermissionDenial::Denied));
    assert_eq!(check(&permissions, "git_pull", Category::VersionControl), Ok(PermissionBasis::Allowed));
    assert_eq!(check(&permissions, "help.list", Category::Other), Err(PermissionDenial::Denied));
    // Names are compared without case.
    let permissions =
        at(AccessLevel::Elevated).with_tools(ToolRules::default(), patterns(&["Git_Push", "MCP_*"]));
    for name in ["git_push", "GIT_PUSH", "mcp_files_read", "Mcp_Files"] {
        assert_eq!(check(&permissions, name, Category::Mcp), Err(PermissionDenial::Denied), "{name}");
    }
    assert!(check(&permissions, "git_pushed", Category::Mcp).is_ok());
}

#[test]
fn tool_allowed_by_name_needs_no_level() {
    for level in AccessLevel::ALL {
        let permissions = at(*level).with_tools(patterns(&["deploy_staging"]), ToolRules::default());
        assert_eq!(check(&permissions, "deploy_staging", Category::Deployment), Ok(PermissionBasis::Allowed));
        assert_eq!(check(&permissions, "Deploy_Staging", Category::Deployment), Ok(PermissionBasis::Allowed));
    }
    let custom = at(AccessLevel::Custom).with_tools(patterns(&["read_file"]), ToolRules::default());
    assert!(check(&custom, "write_file", Category::FileSystem).is_err());
}

#[test]
fn agent_without_permissions_may_call_discovery_tools() {
    let custom = at(AccessLevel::Custom);
    for name in ["list_tools", "load_tool", "load_tool_resource", "help.topics"] {
        assert_eq!(check(&custom, name, Category::Other), Ok(PermissionBasis::Discovery), "{name}");
    }
    for name in ["help.", "help", "list_tools2", "helpx.a", "List_tools"] {
        assert!(check(&custom, name, Category::Other).is_err(), "{name}");
    }
}

#[test]
fn category_may_have_its_own_access_level() {
    let levels = Levels::default();
    let of = |rows: &[(Category, AccessLevel)]| {
        at(AccessLevel::Restricted).with_categories(
            &levels,
            rows.iter().copied().collect(),
            &ConstraintOverrides::default(),
        )
    };
    let permissions =
        of(&[(Category::Terminal, AccessLevel::Standard), (Category::Web, AccessLevel::Sandboxed)]);
    assert_eq!(
        check(&permissions, "t", Category::Terminal),
        Ok(PermissionBasis::Level(AccessLevel::Standard))
    );
    let lacking = PermissionDenial::Category { level: AccessLevel::Sandboxed, category: Category::Web };
    assert_eq!(check(&permissions, "t", Category::Web), Err(lacking));
    assert!(check(&permissions, "t", Category::FileSystem).is_ok());
    assert_eq!(permissions.level_for(Category::Database), AccessLevel::Restricted);
    assert_eq!(permissions.level(), AccessLevel::Restricted);
}

#[test]
fn shared_tool_pattern_is_one_in_both_lists() {
    let shared = |one: &[&str], other: &[&str]| patterns(one).shared(&patterns(other));
    assert_eq!(shared(&["a", "B"], &["b"]).as_deref(), Some("b"));
    assert_eq!(shared(&["a*"], &["A*"]).as_deref(), Some("a*"));
    assert_eq!(shared(&["a*"], &["ab"]), None);
    assert_eq!(shared(&["a*", "b"], &["b", "a*"]).as_deref(), Some("b"), "a whole name first");
    assert!(ToolRules::default().is_empty() && !patterns(&["a*"]).is_empty() && !patterns(&["a"]).is_empty());
}
