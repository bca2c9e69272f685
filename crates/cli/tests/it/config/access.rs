//! The effects of members of `tool_access` and `autonomy`: the displayed levels, and the results of agents' calls.

use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A member of a level with a fixed set of values: the values, the dependent property of the sandbox, and that property's
/// values.
type LevelMemberCase = (&'static str, &'static [&'static str], &'static str, &'static [&'static str]);

const CHOICES: &[LevelMemberCase] = &[
    (
        "file_system",
        &["workspace_only", "project_directory", "full"],
        "/workspace",
        &["empty", "project", "project"],
    ),
    (
        "file_system",
        &["workspace_only", "project_directory", "full"],
        "/is_lent_to",
        &["false", "false", "true"],
    ),
    ("network", &["none", "allowlist_only", "open"], "/web/mode", &["none", "listed", "open"]),
    ("code_execution", &["containerized", "process"], "/isolation", &["containerized", "process"]),
    ("terminal", &["none", "restricted_commands", "full"], "/programs/mode", &["only", "only", "all"]),
];

fn configure(world: &World, text: &str) {
    world.write(".config/belljar/config.yaml", text);
}

fn shown(world: &World, whose: &[&str]) -> Value {
    world.run(&[&["policy", "show", "--json"], whose].concat()).succeeded().json()
}

/// Returns a string as it is, and any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn each_level_has_the_permissions_of_its_section() {
    let world = World::new(BELLJAR);
    for level in ["sandboxed", "restricted", "standard", "elevated", "custom"] {
        let with = |members: &str| {
            configure(&world, &format!("tool_access: {{levels: {{{level}: {{{members}}}}}}}\n"));
            shown(&world, &["--level", level])
        };
        for (member, values, place, expected) in CHOICES {
            for (value, expected) in values.iter().zip(*expected) {
                let shown = with(&format!("{member}: {value}"));
                assert_eq!(shown["constraints"][member], *value, "{level}");
                let follows = shown["sandbox"].pointer(place).unwrap_or_else(|| panic!("{place}: {shown}"));
                assert_eq!(plain(follows), *expected, "{level} {member}: {value}");
            }
        }
        for (git, pushes) in [("local_only", false), ("read_and_branch", false), ("full", true)] {
            let shown = with(&format!("network: open, git: {git}"));
            let expected = json!({ "fetches": git != "local_only", "pushes": pushes });
            assert_eq!((&shown["constraints"]["git"], &shown["sandbox"]["git"]), (&json!(git), &expected));
        }
        for deployment in [true, false] {
            let shown = with(&format!("deployment: {deployment}"));
            let categories = shown["categories"].as_array().unwrap();
            assert_eq!(categories.contains(&json!("deployment")), deployment, "{level}: {shown}");
        }
        let shown = with(
            "description: of tests, requires_approval: ['code:delete'], network: allowlist_only, \
             network_allowlist: ['pkgs.example:443'], terminal: restricted_commands, commands: [ls]",
        );
        assert_eq!(shown["description"], "of tests");
        assert_eq!(shown["constraints"]["requires_approval"], json!(["code:delete"]));
        assert_eq!(shown["sandbox"]["web"]["places"], json!(["pkgs.example:443"]));
        assert_eq!(shown["sandbox"]["programs"]["names"], json!(["ls"]));
    }
}

/// Calls that need no sandbox: one of a category that the level `restricted` lacks, and one that only reads.
const CHART: (&str, &str) =
    ("render_chart", r#"{"kind": "bar", "title": "T", "series": [{"points": [["a", 1]]}]}"#);
const READ: (&str, &str) = ("html_parser", r#"{"html_content": "<p>seen"}"#);
/// A call that writes.
const WRITE: (&str, &str) = ("write_file", r#"{"path": "a", "content": "x"}"#);

/// A call that runs a program.
const SHELL: (&str, &str) = ("shell_command", r#"{"command": "true"}"#);

#[test]
fn agent_calls_follow_the_agents_rules_and_the_global_autonomy() {
    let world = World::new(BELLJAR);
    let ended = |agent: &str, house: &str, (tool, arguments): (&str, &str)| {
        let agents = format!("tool_access: {{agents: [{{name: ada, {agent}}}]}}");
        configure(&world, &format!("{agents}\nautonomy: {{{house}}}\n"));
        let told = world.run(&["tools", "call", tool, arguments, "--agent", "ada", "--json"]).json();
        let ended = if told["status"] == "ok" { &told["status"] } else { &told["domain_code"] };
        plain(ended)
    };
    let (ok, denied, asked) = ("ok", "permission_denied", "approval_required");
    for (agent, house, call, expected) in [
        ("level: restricted", "level: full", CHART, denied),
        ("level: standard", "level: full", CHART, ok),
        ("level: restricted, allowed: [render_chart]", "level: full", CHART, ok),
        ("level: standard, denied: ['render_*']", "level: full", CHART, denied),
        ("level: standard", "level: full", SHELL, ok),
        ("level: standard, sub_constraints: {terminal: none}", "level: full", SHELL, denied),
        (
            "level: standard, sub_constraints: {requires_approval: ['code:write']}",
            "level: full",
            WRITE,
            asked,
        ),
        ("level: standard", "level: full", WRITE, ok),
        ("level: standard, human_approval: ['code:write']", "level: full", WRITE, asked),
        ("level: standard", "level: full, human_approval: ['code:write']", WRITE, asked),
        ("level: standard, autonomy: supervised", "level: full", WRITE, asked),
        ("level: standard, autonomy: full", "level: supervised", WRITE, ok),
        ("level: standard", "level: supervised", WRITE, asked),
        ("level: standard, auto_approve: ['code:write']", "level: supervised", WRITE, ok),
        ("level: standard", "level: supervised, auto_approve: ['code:write']", WRITE, ok),
        ("level: standard", "level: locked", READ, asked),
        ("level: standard, department: sales", "level: full, departments: {sales: locked}", READ, asked),
        ("level: standard, department: others", "level: full, departments: {sales: locked}", READ, ok),
    ] {
        assert_eq!(ended(agent, house, call), expected, "{agent} {house} {call:?}");
    }
    // A junior agent never has full autonomy.
    for (seniority, level) in [("senior", "full"), ("mid", "full"), ("junior", "semi")] {
        let agents =
            format!("tool_access: {{agents: [{{name: ada, level: standard, seniority: {seniority}}}]}}");
        configure(&world, &format!("{agents}\nautonomy: {{level: full}}\n"));
        assert_eq!(shown(&world, &["--agent", "ada"])["autonomy"]["level"], level, "{seniority}");
    }
}

#[test]
fn agent_sub_constraints_override_those_of_its_level() {
    let world = World::new(BELLJAR);
    let with = |members: &str| {
        let agent = format!("{{name: ada, level: standard, sub_constraints: {{{members}}}}}");
        configure(&world, &format!("tool_access: {{agents: [{agent}]}}\n"));
        shown(&world, &["--agent", "ada"])
    };
    for (member, values, place, expected) in CHOICES {
        for (value, expected) in values.iter().zip(*expected) {
            let shown = with(&format!("{member}: {value}"));
            assert_eq!(shown["constraints"][member], *value);
            assert_eq!(plain(shown["sandbox"].pointer(place).unwrap()), *expected, "{member}: {value}");
        }
    }
    for (git, pushes) in [("local_only", false), ("read_and_branch", false), ("full", true)] {
        assert_eq!(with(&format!("git: {git}"))["sandbox"]["git"]["pushes"], pushes, "{git}");
    }
    let shown = with("network: allowlist_only, network_allowlist: ['pkgs.example:443'], commands: [ls]");
    assert_eq!(shown["sandbox"]["web"]["places"], json!(["pkgs.example:443"]));
    assert_eq!(shown["sandbox"]["programs"]["names"], json!(["ls"]));
    // The control: the level itself is unchanged.
    assert_eq!(self::shown(&world, &["--level", "standard"])["sandbox"]["web"]["mode"], "open");
}
