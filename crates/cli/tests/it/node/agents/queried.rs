//! Databases of the host: queries by the agent of a job through tools, as far as its level permits.

use super::{as_agent, configure};
use crate::models::recorded;
use crate::node::tools::{job_of, told, tool_calls};
use belljar_testkit::node::Node;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::process::Command;

const AGENTS: &str = "
tool_access:
  agents:
    - {name: asker, level: elevated, autonomy: full}
    - {name: reader, level: restricted, autonomy: full}
";

const ASK: &str = r#"
tell([tool["name"] for tool in ask("tools/list")["result"]["tools"]])
tell(call("sql_query", database="house", query="SELECT name FROM t ORDER BY a"))
tell(call("sql_query", database="house", query="DELETE FROM t"))
"#;

/// Returns the output of a Python program on the host that uses that database.
fn python(database: &str, program: &str) -> String {
    let program = format!("import sqlite3, sys\nhouse = sqlite3.connect(sys.argv[1])\n{program}");
    let ran = Command::new("python3").args(["-c", &program, database]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn agent_of_a_job_reads_an_allowed_database_and_changes_nothing() {
    let world = World::new(crate::BELLJAR);
    let database = world.path().join("house.db").display().to_string();
    python(
        &database,
        "house.executescript('CREATE TABLE t (a, name); INSERT INTO t VALUES (2, \"two\"), (1, \"one\");')",
    );
    let tools = format!("tools: {{databases: {{sqlite: [{{name: house, path: {database}}}]}}}}\n");
    let node = Node::start(&world, &["--config", &configure(&world, &format!("{tools}{AGENTS}"))]);
    let asked = |agent: &str| told(&node, &as_agent(agent, job_of(None, ASK)));
    let [listed, read, changed] = &asked("asker")[..] else { panic!() };
    assert!(listed.as_array().unwrap().contains(&json!("sql_query")), "{listed}");
    assert_eq!(read["data"]["rows"], json!([{ "name": "one" }, { "name": "two" }]), "{read}");
    assert_eq!(changed["status"], "error", "{changed}");
    assert_eq!(python(&database, "print(house.execute('SELECT count(*) FROM t').fetchone()[0])"), "2\n");

    let [listed, read, _] = &asked("reader")[..] else { panic!() };
    assert!(!listed.as_array().unwrap().contains(&json!("sql_query")), "{listed}");
    assert_eq!((&read["domain_code"], &read["data"]), (&json!("permission_denied"), &Value::Null), "{read}");
    let calls = tool_calls(&world);
    let decisions: Vec<_> =
        calls.iter().map(|call| (&call["judged"]["agent_id"], &call["decision"])).collect();
    assert_eq!(decisions[0], (&json!("asker"), &json!("allow")), "{calls:?}");
    assert_eq!(decisions[2], (&json!("reader"), &json!("deny")), "{calls:?}");
    assert!(recorded(&world.path().join("state/node/audit"), "egress").is_empty());
}
