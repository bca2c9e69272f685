//! The effects of members of `approvals` and `tool_access.action_types` on the person who approves.

use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::process::Command;

fn call(world: &World, configuration: &str, tool: &str, arguments: &Value) -> Value {
    world.write(".config/belljar/config.yaml", configuration);
    let arguments = arguments.to_string();
    world.run(&["tools", "call", tool, &arguments, "--agent", "asker", "--json"]).json()
}

const ASKER: &str = "{name: asker, level: standard, autonomy: full, human_approval: ['code:write']}";

/// Makes all decided approvals two days older, in this machine's database.
const AGE: &str = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
days = 2 * 24 * 3600 * 1000
database.execute('UPDATE approvals SET created_at_ms = created_at_ms - ?, decided_at_ms = decided_at_ms - ?', (days, days))
database.commit()
";

#[test]
fn denied_approvals_are_removed_after_the_retention_days() {
    let world = World::new(BELLJAR);
    let with = |retention: &str| format!("tool_access: {{agents: [{ASKER}]}}\napprovals: {{{retention}}}\n");
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let denied = || world.run(&["approval", "list", "--status", "denied", "--json"]).succeeded().json();
    call(&world, &with(""), "write_file", &write("first"));
    let pending = world.run(&["approval", "list", "--json"]).succeeded().json();
    let id = pending[0]["id"].as_str().unwrap().to_owned();
    world.run(&["approval", "deny", &id, "--reason", "no"]).succeeded();
    let database = world.path().join("state/agents.db");
    assert!(Command::new("python3").args(["-c", AGE]).arg(database).status().unwrap().success());
    // Old approvals are removed when a new one is requested.
    for (number, retention, is_kept) in
        [(1, "", true), (2, "retention_days: 3", true), (3, "retention_days: 1", false)]
    {
        let told = call(&world, &with(retention), "write_file", &write(&number.to_string()));
        assert_eq!(told["domain_code"], "approval_required", "{told}");
        let ids: Vec<Value> = denied().as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids.contains(&json!(id)), is_kept, "{retention}: {ids:?}");
    }
}

#[test]
fn approval_is_required_for_configured_action_types_with_their_risk_and_reason() {
    let world = World::new(BELLJAR);
    let asked = |action_types: &str| {
        let configuration = format!("tool_access: {{agents: [{ASKER}]{action_types}}}\n");
        let free = json!({ "action_type": "acme:rotate", "title": "Rotate", "description": action_types });
        call(&world, &configuration, "request_human_approval", &free)
    };
    let with = |members: &str| asked(&format!(", action_types: [{{name: 'acme:rotate'{members}}}]"));
    let unknown = asked("");
    assert_eq!(unknown["domain_code"], "invalid_argument", "{unknown}");
    let unsaid = with("")["data"].clone();
    assert_eq!(unsaid["risk_level"], "high", "{unsaid}");
    let said = with(", risk: critical, why: all keys change")["data"].clone();
    let found = (&said["action_type"], &said["risk_level"], &said["risk_reason"]);
    assert_eq!(found, (&json!("acme:rotate"), &json!("critical"), &json!("all keys change")), "{said}");
    assert_ne!(unsaid["risk_reason"], said["risk_reason"]);
    let shown = world.run(&["approval", "show", said["approval_id"].as_str().unwrap()]).succeeded().stdout;
    assert!(shown.contains("acme:rotate, risk critical"), "{shown}");
}
