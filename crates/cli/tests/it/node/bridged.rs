//! Other MCP servers, whose tools a node's agents call.

use super::remote_tools::{call, list, names, token};
use super::tools::{job_of, told, tool_calls};
use belljar_testkit::node::Node;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use belljar_testkit::{clients, mcp, processes, wait};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Waits until a tool is listed: its server is started while the node serves already.
const LISTED: &str = r#"
import time
names = []
for _ in range(600):
    names = sorted(tool["name"] for tool in ask("tools/list")["result"]["tools"] if tool["name"].startswith("mcp_"))
    if any(name.startswith("mcp_every_") for name in names): break
    time.sleep(0.1)
"#;

#[test]
fn agent_calls_tools_of_an_mcp_server_that_ends_with_the_node() {
    let (node, packages) = match (clients::node(), mcp::packages_folder()) {
        (Ok(node), Ok(packages)) => (node, packages),
        (Err(why), _) | (_, Err(why)) => return skip("tools of another server", &why),
    };
    let world = World::new(crate::BELLJAR);
    let main = packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let server = |name: &str, more: &str| {
        format!(
            "    - name: {name}\n      transport: stdio\n      command: {}\n      args: [{}, stdio]\n      lend: [{}]\n      \
             connect_timeout_seconds: 60\n{more}",
            node.display(),
            main.display(),
            packages.display()
        )
    };
    // One server for agents in sandboxes, one for planners, and one that can't be started.
    let every = server("every", "      scope: sandbox\n      enabled_tools: [echo, get-sum]\n");
    let planners = server("planners", "");
    let none = "    - {name: none, transport: stdio, command: no-such-server, scope: sandbox}\n";
    let config = format!("mcp:\n  servers:\n{none}{planners}{every}");
    world.write("mcp.yaml", &config);
    let path = world.path().join("mcp.yaml");
    let mut started = Node::start(&world, &["--config", path.to_str().unwrap()]);
    let script = format!(
        "{LISTED}\ntell(names)\ntell(call('mcp_every_echo', message='hello'))\n\
         tell(call('mcp_every_get-sum', a='one', b=2))\ntell(call('mcp_planners_echo', message='hello'))\n"
    );
    let [names, echo, wrong, denied] = &told(&started, &job_of(None, &script))[..] else {
        panic!("four answers")
    };
    assert_eq!(names, &json!(["mcp_every_echo", "mcp_every_get-sum"]));
    assert_eq!((&echo["status"], &echo["data"]["content"]), (&json!("ok"), &json!("Echo: hello")));
    assert_eq!(wrong["domain_code"], "invalid_argument", "{wrong}");
    // The tool belongs to another agent, or isn't known yet.
    assert!(denied["error"]["code"].is_i64() || denied["domain_code"] == "not_found", "{denied}");
    let calls = tool_calls(&world);
    let echoed = calls.iter().find(|call| call["tool_name"] == "mcp_every_echo");
    assert_eq!(echoed.map(|call| &call["status"]), Some(&json!("success")), "{calls:?}");
    let runs = || std::fs::read_dir(world.path().join("state/node/runs")).map_or(0, Iterator::count);
    assert!(runs() >= 2, "one sandbox for each server");
    let below = processes::sealed_below(started.pid().cast_signed());
    assert!(!below.is_empty());
    assert_eq!(started.stop(), Some(0));
    assert_eq!(runs(), 0, "all server sandboxes are gone");
    wait::until(|| below.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
}

#[test]
fn mcp_server_workspace_searched_for_configuration_is_refused() {
    let world = World::new(crate::BELLJAR);
    world.write("token", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(world.path().join("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let server = |name: &str, directory: &str| {
        world.write(&format!("{directory}/file"), "");
        let path = world.path().join(directory);
        format!(
            "    - {{name: {name}, transport: stdio, command: sh, args: [-c, 'touch /workspace/ran'], \
             workspace: {{path: {}, mode: direct}}, connect_timeout_seconds: 30}}\n",
            path.display()
        )
    };
    let config = format!("mcp:\n  servers:\n{}{}", server("home", ".config"), server("plain", "plain"));
    world.write("mcp.yaml", config);
    let arguments = ["node", "--listen", "127.0.0.1:0", "--token-file", "token", "--config", "mcp.yaml"];
    let mut node = world.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The pipe stays open, so that the node can write its log as long as it runs.
    let mut log = BufReader::new(node.stderr.take().unwrap()).lines().map_while(Result::ok);
    let refused = log.find(|line| line.contains("\"home\"")).unwrap();
    // Control: another directory is mounted.
    wait::until(|| world.path().join("plain/ran").exists());
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(refused.contains(".config/belljar/config.yaml"), "{refused}");
    assert!(!world.path().join(".config/ran").exists());
}

/// A server with two tools, of which one is marked as read-only.
pub(super) const HINTED: &str = r#"
import json, sys
def tool(name, annotations): return {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}},
        "tools/list": {"tools": [tool("look", {"readOnlyHint": True}), tool("change", {})]},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] in results: answer["result"] = results[asked["method"]]
    else: answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn analyst_gets_mcp_tools_only_if_they_are_declared_read_only() {
    let world = World::new(crate::BELLJAR);
    let script = world.write("server/hinted.py", HINTED);
    let config = format!(
        "mcp:\n  servers:\n    - {{name: hinted, transport: stdio, command: python3, args: ['{}'], lend: ['{}'], \
         connect_timeout_seconds: 60}}\n",
        script.display(),
        world.path().join("server").display()
    );
    let config = world.write("mcp.yaml", config);
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let planner = token(&node, json!({ "kind": "project_manager" }));
    let analyst = token(&node, json!({ "kind": "project_analyst", "user_id": "ada" }));
    let listed = |token: &str| -> Vec<String> {
        names(&list(&node, token)).into_iter().filter(|name| name.starts_with("mcp_")).collect()
    };
    // The control: the other kind of agent has both.
    wait::until(|| listed(&planner) == ["mcp_hinted_change", "mcp_hinted_look"]);
    assert_eq!(listed(&analyst), ["mcp_hinted_look"]);
    let called = |tool: &str| call(node.address(), &analyst, tool, &json!({}));
    assert_eq!(called("mcp_hinted_look")["result"]["structuredContent"]["status"], "ok");
    assert_eq!(called("mcp_hinted_change")["error"]["data"]["reason"], "not_read_only");
}

/// A server that returns a very long error message.
const WORDY: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if asked.get("method") == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
    elif asked.get("method") == "tools/list":
        answer["error"] = {"code": -32000, "message": "M" * 900000}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in asked:
        print(json.dumps(answer), flush=True)
"#;

#[test]
fn node_log_contains_little_of_what_an_mcp_server_prints() {
    let world = World::new(crate::BELLJAR);
    world.write("wordy.py", WORDY);
    let script = world.path().join("wordy.py");
    let config = format!(
        "mcp:\n  servers:\n    - {{name: wordy, transport: stdio, unsealed: true, command: /usr/bin/python3, args: ['{}']}}\n",
        script.display()
    );
    world.write("mcp.yaml", config);
    let path = world.path().join("mcp.yaml");
    let node = Node::start(&world, &["--config", path.to_str().unwrap()]);
    let is_told = |line: &&str| line.contains("connecting to an MCP server failed");
    // The node connects to it again and again.
    wait::until(|| node.log().lines().filter(is_told).count() >= 2);
    let log = node.log();
    let lines: Vec<&str> = log.lines().filter(is_told).collect();
    assert!(
        lines.iter().all(|line| line.contains("the server does not list its tools") && line.contains("MMM")),
        "{lines:?}"
    );
    assert!(log.lines().all(|line| line.len() < 2_000), "{log:.3000}");
}
