//! The limit of each member of a level on tool calls, both in the level and as an override for one agent.

use crate::BELLJAR;
use crate::egress::HelloServer;
use crate::mcp::McpConversation;
use crate::session::{SessionCleanup, list};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// Returns configurations with these members in each place where they may be, for the agent `ada`.
fn in_both_places(sandboxing: &str, members: &str) -> [String; 2] {
    let with = |levels: &str, of_agent: &str| {
        let agent = format!("{{name: ada, level: standard, autonomy: full{of_agent}}}");
        format!("sandboxing: {{{sandboxing}}}\ntool_access: {{{levels}agents: [{agent}]}}\n")
    };
    [
        with(&format!("levels: {{standard: {{{members}}}}}, "), ""),
        with("", &format!(", sub_constraints: {{{members}}}")),
    ]
}

const NATIVE: &str = "default_backend: native";

fn call(
    world: &World,
    configuration: &str,
    (tool, arguments): (&str, &Value),
    options: &[&str],
) -> ProgramOutput {
    world.write(".config/belljar/config.yaml", configuration);
    let arguments = arguments.to_string();
    world.run(&[&["tools", "call", tool, &arguments, "--agent", "ada", "--json"], options].concat())
}

/// Returns the result of a call: `ok`, or the code of its failure.
fn ended(ran: &ProgramOutput) -> String {
    let told = ran.json();
    let ended = if told["status"] == "ok" { &told["status"] } else { &told["domain_code"] };
    ended.as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn tools_start_only_programs_that_terminal_and_commands_allow() {
    let world = World::new(BELLJAR);
    let command = json!({ "command": "ls / >/dev/null && id -u >/dev/null" });
    for (members, status, exit_code) in [
        ("terminal: none", "permission_denied", None),
        ("terminal: full", "ok", Some(0)),
        ("terminal: restricted_commands, commands: [bash, ls]", "ok", Some(126)),
        ("terminal: restricted_commands, commands: [bash, ls, id]", "ok", Some(0)),
    ] {
        for configuration in in_both_places(NATIVE, members) {
            let ran = call(&world, &configuration, ("shell_command", &command), &[]);
            assert_eq!(ended(&ran), status, "{configuration}: {ran:?}");
            assert_eq!(ran.json()["data"]["exit_code"].as_i64(), exit_code, "{configuration}: {ran:?}");
        }
    }
}

#[test]
fn tools_access_only_files_that_file_system_allows() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("project/notes.txt", "of the project\n");
    world.write("lent/notes.txt", "of the host\n");
    let lent = format!("{}:/opt/lent", world.path().join("lent").display());
    let read = json!({ "path": "notes.txt" });
    for (value, has_project, is_lent_to) in
        [("workspace_only", false, false), ("project_directory", true, false), ("full", true, true)]
    {
        for configuration in in_both_places(NATIVE, &format!("terminal: full, file_system: {value}")) {
            let ran = call(&world, &configuration, ("read_file", &read), &["--workspace", "project"]);
            assert_eq!(ran.code, if has_project { 0 } else { 125 }, "{configuration}: {ran:?}");
            assert_eq!(ran.stdout.contains("of the project"), has_project, "{configuration}: {ran:?}");
            let created = world.run(&["session", "create", "--agent", "ada", "--ro", &lent]);
            assert_eq!(created.code, if is_lent_to { 0 } else { 125 }, "{configuration}: {created:?}");
            if is_lent_to {
                let session = list(&world)[0]["id"].as_str().unwrap().to_owned();
                let look = json!({ "command": "cat /opt/lent/notes.txt" });
                let ran = call(&world, &configuration, ("shell_command", &look), &["--session", &session]);
                assert_eq!(ran.json()["data"]["stdout"], "of the host\n", "{ran:?}");
                world.run(&["session", "end", &session]).succeeded();
            }
        }
    }
}

#[test]
fn tools_reach_only_hosts_that_network_and_its_allowlist_allow() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    // The upstream proxy answers for every name, so none is looked up.
    let policy = format!("rules: []\nproxy: {{url: 'http://{}', names: there}}\n", server.address);
    let policy = world.write("policy.yaml", policy).display().to_string();
    let fetched = |options: &[&str], hosts: &[&str]| {
        let mut talk =
            McpConversation::begin(&world, &[&["--tools", "builtin", "--agent", "ada"], options].concat());
        let fetch = |host: &&str| {
            let told = talk.call("web_fetch", &json!({ "url": format!("http://{host}/") }));
            let ended = if told["status"] == "ok" { &told["status"] } else { &told["domain_code"] };
            ended.as_str().unwrap().to_owned()
        };
        hosts.iter().map(fetch).collect::<Vec<_>>()
    };
    let (by_policy, hosts) = (["--egress", policy.as_str()], ["pkgs.zone.test", "other.zone.test"]);
    let named = "network: allowlist_only, network_allowlist: ['pkgs.zone.test:80']";
    let (ok, denied) = ("ok", "permission_denied");
    for (members, expected) in
        [("network: allowlist_only", [denied, denied]), (named, [ok, denied]), ("network: open", [ok, ok])]
    {
        for configuration in in_both_places(NATIVE, members) {
            world.write(".config/belljar/config.yaml", &configuration);
            let before = server.asked();
            assert_eq!(fetched(&by_policy, &hosts), expected, "{configuration}");
            let reached = expected.iter().filter(|ended| **ended == ok).count();
            assert_eq!(server.asked() - before, reached, "{configuration}");
        }
    }
    for configuration in in_both_places(NATIVE, "network: none") {
        let url = json!({ "url": "http://pkgs.zone.test/" });
        let refused = call(&world, &configuration, ("web_fetch", &url), &by_policy);
        assert!(refused.stderr.contains("--egress: ada reaches nothing"), "{configuration}: {refused:?}");
        assert_eq!(ended(&call(&world, &configuration, ("web_fetch", &url), &[])), denied, "{configuration}");
    }
}

#[test]
fn tools_run_code_only_in_sandboxes_that_code_execution_allows() {
    let world = World::new(BELLJAR);
    for (value, is_moved) in [("containerized", true), ("process", false)] {
        let members = format!("terminal: full, code_execution: {value}");
        for configuration in in_both_places("overrides: {terminal: subprocess}", &members) {
            let ran = call(&world, &configuration, ("shell_command", &json!({ "command": "true" })), &[]);
            assert_eq!(ended(&ran), "ok", "{configuration}: {ran:?}");
            let moved = "terminal in native, because subprocess doesn't contain the code";
            assert_eq!(ran.stderr.contains(moved), is_moved, "{configuration}: {ran:?}");
        }
    }
}

#[test]
fn tools_wait_for_approval_of_actions_in_requires_approval() {
    let world = World::new(BELLJAR);
    let write = json!({ "path": "a.txt", "content": "x" });
    for (members, status) in [
        ("requires_approval: ['code:write']", "approval_required"),
        ("requires_approval: ['code:delete']", "ok"),
    ] {
        for configuration in in_both_places(NATIVE, members) {
            let ran = call(&world, &configuration, ("write_file", &write), &[]);
            assert_eq!(ended(&ran), status, "{configuration}: {ran:?}");
        }
    }
}
