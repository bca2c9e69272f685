//! Web pages for the agent of a node's job, through the tools at its hatch.

use super::web::{configure, job, rule};
use crate::egress::HelloServer;
use crate::models::recorded;
use belljar_testkit::node::Node;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A program inside that calls the tool `TOOL` with `ARGUMENTS`, and prints the result.
const CALL: &str = r#"python3 - <<'END'
import http.client, json

def ask(method, params, name=None):
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if name:
        headers["mcp-name"] = name
    hatch = http.client.HTTPConnection("127.0.0.1", 7070, timeout=60)
    hatch.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
    return json.loads(hatch.getresponse().read())

listed = {tool["name"]: tool for tool in ask("tools/list", {})["result"]["tools"]}
arguments = json.loads('''ARGUMENTS''')
task = listed["help.get"]["inputSchema"]["properties"]["task_id"]["const"]
called = ask("tools/call", {"name": "TOOL", "arguments": {"task_id": task, **arguments}}, "TOOL")
error = called.get("error")
print(json.dumps({"listed": "TOOL" in listed, "error": error, "answer": called.get("result", {}).get("structuredContent")}))
END"#;

pub(super) fn calling(tool: &str, arguments: &Value) -> String {
    CALL.replace("TOOL", tool).replace("ARGUMENTS", &arguments.to_string())
}

/// Returns the output of a step of the job.
pub(super) fn printed(told: &Value, step: usize) -> Value {
    let stdout = told["sba_result"]["steps"][step]["result"]["stdout"].as_str();
    serde_json::from_str(stdout.unwrap_or_else(|| panic!("{told}"))).unwrap()
}

#[test]
fn agent_fetches_allowed_pages_and_each_fetch_is_recorded_for_its_job() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let port = server.address.port();
    let config = configure(&world, &rule(port));
    let node = Node::start(&world, &["--config", &config]);
    let there = calling("web.fetch", &json!({ "url": format!("http://localhost:{port}/") }));
    let elsewhere = calling("web.fetch", &json!({ "url": "http://localhost:1/" }));
    let inside = calling("web.fetch", &json!({ "url": "http://169.254.169.254/latest/" }));
    let told = node.run(&job(&[&there, &elsewhere, &inside], true)).json();
    assert_eq!(told["status"], "completed", "{told}");

    let read = printed(&told, 0);
    assert_eq!((&read["listed"], &read["answer"]["status"]), (&json!(true), &json!("ok")), "{read}");
    let data = &read["answer"]["data"];
    assert_eq!((&data["content_text"], &data["untrusted"]), (&json!("hello\n"), &json!(true)), "{data}");
    assert_eq!(data["metadata"]["final_url"], format!("http://localhost:{port}/"));
    assert_eq!((&data["metadata"]["status"], server.asked()), (&json!(200), 1));

    let denied = printed(&told, 1)["answer"].clone();
    assert_eq!(denied["domain_code"], "permission_denied", "{denied}");
    let message = denied["message"].as_str().unwrap();
    assert!(message.contains("{host: \"localhost\", ports: [1]"), "{message}");
    assert_eq!(printed(&told, 2)["answer"]["domain_code"], "permission_denied");

    // The request is reported and recorded like a request through the job's proxy.
    assert_eq!(
        (&told["web"]["passages"], &told["web"]["denied"][0]["port"]),
        (&json!(1), &json!(1)),
        "{told}"
    );
    let passages = recorded(&world.path().join("state/node/audit"), "egress");
    assert_eq!(passages.len(), 3, "{passages:?}");
    assert!(passages.iter().all(|passage| passage["run_id"] == told["run_id"]), "{passages:?}");
    assert_eq!(passages[0]["asked"]["host"], "localhost");
    let calls = recorded(&world.path().join("state/node/audit"), "tool_called");
    assert_eq!(calls.len(), 3, "{calls:?}");
}

#[test]
fn job_without_web_access_has_no_web_tools_and_a_denied_step_is_ext_net_required() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let port = server.address.port();
    let config = configure(&world, &rule(port));
    let node = Node::start(&world, &["--config", &config]);
    let there = calling("web.fetch", &json!({ "url": format!("http://localhost:{port}/") }));
    let told = node.run(&job(&[&there], false)).json();
    let refused = printed(&told, 0);
    assert_eq!((&refused["listed"], &refused["answer"]), (&json!(false), &Value::Null), "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "no_reach", "{refused}");
    assert_eq!((server.asked(), told["web"].is_object()), (0, false));
    // The control.
    let told = node.run(&job(&[&there], true)).json();
    assert_eq!(printed(&told, 0)["answer"]["status"], "ok", "{told}");
    assert_eq!(server.asked(), 1);

    let elsewhere = calling("web.fetch", &json!({ "url": "http://localhost:1/" }));
    let told = node.run(&job(&[&format!("{elsewhere}\nexit 3")], true)).json();
    assert_eq!(told["failure_code"], "ext_net_required", "{told}");
}

#[test]
fn agent_makes_only_requests_that_its_job_allows() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let port = server.address.port();
    let config = configure(&world, &rule(port));
    let node = Node::start(&world, &["--config", &config]);
    // It names no task: the hatch identifies the job.
    let asking = |url: &str, more: &Value| {
        let mut arguments = json!({ "url": url, "method": "POST", "body": "x" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        calling("http_request", &arguments).replace("\"task_id\": task, ", "")
    };
    let url = format!("http://localhost:{port}/");
    let there = asking(&url, &json!({ "headers": { "x-token": "t" } }));
    let elsewhere = asking("http://localhost:1/", &json!({}));
    let inside = asking("http://169.254.169.254/latest/", &json!({}));
    let other_host = asking(&url, &json!({ "headers": { "Host": "other.example" } }));
    let told = node.run(&job(&[&there, &elsewhere, &inside, &other_host], true)).json();
    let made = printed(&told, 0);
    assert_eq!((&made["listed"], &made["answer"]["status"]), (&json!(true), &json!("ok")), "{made}");
    let data = &made["answer"]["data"];
    assert_eq!(
        (&data["status"], &data["untrusted"], server.asked()),
        (&json!(200), &json!(true), 1),
        "{data}"
    );
    for denied in [1, 2] {
        assert_eq!(printed(&told, denied)["answer"]["domain_code"], "permission_denied", "{told}");
    }
    assert_eq!(printed(&told, 3)["answer"]["domain_code"], "invalid_argument", "{told}");
    let passages = recorded(&world.path().join("state/node/audit"), "egress");
    assert_eq!(passages.len(), 3, "{passages:?}");
    assert_eq!(passages[0]["asked"]["method"], "POST");
    // A call that may change something is recorded on disk before it is made.
    assert_eq!(recorded(&world.path().join("state/node/audit"), "tool_begun").len(), 4);
    let told = node.run(&job(&[&there], false)).json();
    assert_eq!(printed(&told, 0)["error"]["data"]["reason"], "no_reach", "{told}");
    assert_eq!(server.asked(), 1);
}
