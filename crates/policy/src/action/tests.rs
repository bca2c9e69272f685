//! Tests of action types and patterns.

use super::*;
use belljar_contract::action::Risk;

fn names(pattern: &str) -> Vec<String> {
    let registry = ActionRegistry::default();
    registry.expand(pattern).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn registry_has_forty_one_actions_each_with_a_reason() {
    let registry = ActionRegistry::default();
    assert_eq!(registry.all().count(), 41);
    for leaf in BuiltInAction::ALL {
        assert!(registry.knows(&leaf.into()));
        assert_eq!(BuiltInAction::named(leaf.as_str()), Some(leaf));
        assert_eq!(registry.risk(&leaf.into()), weighed(leaf).risk);
        assert_eq!(registry.why(&leaf.into()), weighed(leaf).why);
        assert!(!weighed(leaf).why.is_empty());
    }
}

/// Published risk levels.
#[test]
fn action_risks_match_the_documented_table() {
    let of = |risk| {
        BuiltInAction::ALL
            .into_iter()
            .filter(move |leaf| weighed(*leaf).risk == risk)
            .map(BuiltInAction::as_str)
    };
    assert_eq!(of(Risk::Critical).collect::<Vec<_>>(), ["deploy:production", "org:fire", "db:admin"]);
    let high: Vec<_> = of(Risk::High).collect();
    for name in [
        "deploy:staging",
        "db:mutate",
        "code:delete",
        "vcs:push",
        "comms:external",
        "budget:exceed",
        "tool:create",
    ] {
        assert!(high.contains(&name), "{name}");
    }
    let low: Vec<_> = of(Risk::Low).collect();
    for name in [
        "code:read",
        "vcs:read",
        "test:write",
        "test:run",
        "docs:write",
        "vcs:branch",
        "comms:internal",
        "db:query",
    ] {
        assert!(low.contains(&name), "{name}");
    }
}

#[test]
fn category_pattern_expands_to_exactly_its_actions() {
    assert_eq!(names("code"), ["code:read", "code:write", "code:create", "code:delete", "code:refactor"]);
    assert_eq!(names("code:create"), ["code:create"]);
    assert_eq!(names("all").len(), 41);
    // No category is a prefix of another one.
    assert_eq!(names("org"), ["org:hire", "org:fire", "org:promote"]);
}

#[test]
fn misspelt_pattern_is_refused_with_the_nearest_name() {
    let registry = ActionRegistry::default();
    let nearest = |pattern: &str| registry.expand(pattern).unwrap_err().nearest;
    for (pattern, meant) in [
        ("code:craete", "code:create"),
        ("deploy:prodction", "deploy:production"),
        ("cod", "code"),
        ("coms", "comms"),
        ("db:mutatee", "db:mutate"),
        ("Code", "code"),
    ] {
        assert_eq!(nearest(pattern).as_deref(), Some(meant), "{pattern}");
    }
    for pattern in ["something_else_altogether", "deploy:*********"] {
        assert_eq!(nearest(pattern), None, "{pattern}");
    }
    let told = |pattern: &str| registry.expand(pattern).unwrap_err().to_string();
    assert_eq!(told("cod"), "\"cod\" is neither an action type nor a category; \"code\" is one");
    assert_eq!(told("elsewhere_entirely"), "\"elsewhere_entirely\" is neither an action type nor a category");
}

#[test]
fn custom_actions_behave_like_built_in_ones() {
    let acme = ActionType::parse("acme:rotate").unwrap();
    let row = |action: &ActionType, risk| RegisteredAction { action: action.clone(), risk, why: None };
    let registry = ActionRegistry::with([row(&acme, None)]).unwrap();
    assert_eq!(registry.all().count(), 42);
    assert_eq!(registry.risk(&acme), Risk::High, "much, where nothing is said");
    assert_eq!(registry.expand("acme").unwrap().len(), 1);
    assert!(registry.expand("all").unwrap().contains(&acme));
    let low = ActionRegistry::with([row(&acme, Some(Risk::Low))]).unwrap();
    assert_eq!(low.risk(&acme), Risk::Low);
    // Neither a built-in action nor a custom one can get another risk.
    let taken = Err(RegisterActionError::Taken { action: BuiltInAction::DbAdmin.into() });
    assert_eq!(ActionRegistry::with([row(&BuiltInAction::DbAdmin.into(), Some(Risk::Low))]), taken);
    assert!(ActionRegistry::with([row(&acme, None), row(&acme, Some(Risk::Low))]).is_err());
    // An unregistered action is unknown, and its risk is high.
    assert!(!ActionRegistry::default().knows(&acme));
    assert_eq!(ActionRegistry::default().risk(&acme), Risk::High);
    assert!(ActionRegistry::default().expand("acme:rotate").is_err());
}

#[test]
fn each_tool_category_has_a_default_action() {
    let of = |category| of_category(category).as_str();
    let expected = [
        (Category::FileSystem, "code:write"),
        (Category::CodeExecution, "code:write"),
        (Category::Terminal, "code:write"),
        (Category::Mcp, "code:write"),
        (Category::VersionControl, "vcs:commit"),
        (Category::Web, "comms:external"),
        (Category::Database, "db:query"),
        (Category::Design, "docs:write"),
        (Category::Communication, "comms:internal"),
        (Category::Analytics, "code:read"),
        (Category::Other, "code:read"),
        (Category::Deployment, "deploy:staging"),
        (Category::Memory, "memory:read"),
        (Category::Ontology, "memory:read"),
        (Category::Browser, "browser:navigate"),
        (Category::ExternalData, "external_data:request"),
        (Category::Desktop, "desktop:launch"),
    ];
    assert_eq!(expected.len(), Category::ALL.len());
    for (category, action) in expected {
        assert_eq!(of(category), action, "{category}");
    }
}
