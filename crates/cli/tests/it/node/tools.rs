//! Tools that a job's agent calls at its hatch: the data that they keep, and its scope.

use crate::models::recorded;
use belljar_testkit::node::{Node, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Speaks MCP without a handshake: `call(name, arguments)` returns the result, and `send(message)` the response to any
/// message.
pub(super) const CLIENT: &str = r#"
import base64, json, os, sys, urllib.request, urllib.error
JOB, TASK = os.environ["CYNODE_JOB_ID"], os.environ["CYNODE_TASK_ID"]
VERSION = "2026-07-28"
def send(message, headers={}):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request("http://127.0.0.1:7070/mcp", data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer: text = answer.read().decode()
    except urllib.error.HTTPError as error: text = error.read().decode()
    try: return json.loads(text)
    except ValueError: return {"text": text}
def ask(method, **params):
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
    if "name" in params: headers["Mcp-Name"] = params["name"]
    return send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers)
def call(name, **arguments):
    answer = ask("tools/call", name=name, arguments=arguments)
    return answer["result"]["structuredContent"] if "result" in answer else answer
def tell(value): print(json.dumps(value))
"#;

/// Returns a job of that task whose single program is this script.
pub(crate) fn job_of(task: Option<&Value>, script: &str) -> Value {
    let script = format!("{CLIENT}{script}");
    let mut job = steps(&json!([
        { "type": "run_command", "args": { "argv": ["python3", "-c", script] } }
    ]));
    if let Some(task) = task {
        job["task_id"] = task.clone();
        job["sandbox"]["job_spec"]["task_id"] = task.clone();
    }
    job
}

/// Returns the lines that a job's program has reported.
pub(crate) fn told(node: &Node<'_>, job: &Value) -> Vec<Value> {
    let answer = node.run(job).json();
    assert_eq!(answer["status"], "completed", "{answer}");
    let output = answer["sba_result"]["steps"][0]["result"]["stdout"].as_str().unwrap();
    output.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{output}"))).collect()
}

/// Returns the audit records of tool calls on that node.
pub(super) fn tool_calls(world: &World) -> Vec<Value> {
    recorded(&world.path().join("state/node/audit"), "tool_called")
}

#[test]
fn stored_file_is_available_to_later_jobs_of_its_task_only() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let put = r#"
content = base64.b64encode(b"a\0b" * 9).decode()
tell(call("artifact.put", task_id=TASK, path="notes/a.bin", content_bytes_base64=content, content_type="text/plain"))
tell(call("artifact.put", task_id=TASK, path="../a", content_bytes_base64=""))
"#;
    let first = job_of(None, put);
    let [kept, refused] = &told(&node, &first)[..] else { panic!("two answers") };
    assert_eq!((&kept["data"]["path"], &kept["data"]["size_bytes"]), (&json!("notes/a.bin"), &json!(27)));
    assert_eq!(refused["domain_code"], "invalid_argument", "{refused}");
    let look = r#"
tell(call("artifact.list", task_id=TASK))
tell(call("artifact.get", task_id=TASK, path="notes/a.bin", offset_bytes=3, max_bytes=4))
"#;
    let [list, piece] = &told(&node, &job_of(Some(&first["task_id"]), look))[..] else { panic!() };
    assert_eq!(list["pagination"], json!({ "total": 1, "offset": 0, "limit": 50 }));
    assert_eq!(list["data"][0]["checksum_sha256"], kept["data"]["checksum_sha256"]);
    assert_eq!(list["data"][0]["job_id"], first["job_id"]);
    assert_eq!(
        (&piece["data"]["content_bytes_base64"], &piece["data"]["is_whole"]),
        (&json!("YQBiYQ=="), &json!(false))
    );
    let other = format!(
        r#"
tell(call("artifact.get", task_id=TASK, path="notes/a.bin"))
tell(call("artifact.get", task_id={task}, path="notes/a.bin"))
tell(call("artifact.get", task_id={task}.upper(), path="notes/a.bin"))
tell(call("artifact.get", task_id=TASK, path="../{bare}/notes/a.bin"))
"#,
        task = first["task_id"],
        bare = first["task_id"].as_str().unwrap(),
    );
    let [own, others, upper, path] = &told(&node, &job_of(None, &other))[..] else { panic!() };
    assert_eq!(own["domain_code"], "not_found", "{own}");
    assert_eq!(path["domain_code"], "invalid_argument", "{path}");
    for refused in [others, upper] {
        assert_eq!(refused["error"]["data"]["reason"], "out_of_bounds", "{refused}");
    }
}

#[test]
fn agents_notes_are_private_to_its_job_and_limited() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let note = r#"
tell(call("memory.add", task_id=TASK, job_id=JOB, key="plan", content="first", summary="what to do"))
tell(call("memory.add", task_id=TASK, job_id=JOB, key="plan", content="second"))
tell(call("memory.retrieve", task_id=TASK, job_id=JOB, key="plan"))
tell(call("memory.add", task_id=TASK, job_id=JOB, key="much", content="x" * 70000))
tell(call("memory.list", task_id=TASK, job_id=JOB))
tell(call("memory.search", task_id=TASK, job_id=JOB, query="SECOND plan"))
tell(call("memory.search", task_id=TASK, job_id="00000000-0000-7000-8000-000000000000", query="second"))
tell(call("memory.delete", task_id=TASK, job_id=JOB, key="plan"))
tell(call("memory.retrieve", task_id=TASK, job_id=JOB, key="plan"))
"#;
    let [first, second, got, much, list, found, other, deleted, gone] = &told(&node, &job_of(None, note))[..]
    else {
        panic!()
    };
    assert_eq!((&first["data"]["replaced"], &second["data"]["replaced"]), (&json!(false), &json!(true)));
    assert_eq!(got["data"]["content"], "second");
    assert_eq!(much["domain_code"], "limit_exceeded", "{much}");
    assert_eq!(list["pagination"]["total"], 1, "{list}");
    let best = &found["data"][0];
    assert_eq!((&best["key"], &best["snippet"]), (&json!("plan"), &json!("second")), "{found}");
    assert_eq!((&best["words_found"], &best["found_in"]), (&json!(2), &json!(["key", "content"])), "{found}");
    assert_eq!(other["error"]["data"]["reason"], "out_of_bounds", "{other}");
    assert_eq!((&deleted["status"], &gone["domain_code"]), (&json!("ok"), &json!("not_found")));
}

#[test]
fn agent_gets_only_its_kinds_tools_in_any_spelling_and_every_try_is_recorded() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let tries = r#"
names = [tool["name"] for tool in ask("tools/list")["result"]["tools"]]
tell(names)
others = ["task.get", "job.submit", "sandbox.exec", "skills.create", "skills.update", "skills.delete", "web.fetch"]
nowhere = ["db.task.get", "node.list", "Task.get", "sandbox.exec ", " sandbox.exec", "sandbox․exec", "sandbox/exec", "sandbox.exec\0", ""]
for name in others + nowhere:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {"task_id": TASK}}}
    tell([name, send(message, {"MCP-Protocol-Version": "2025-11-25"})])
"#;
    let told_lines = told(&node, &job_of(None, tries));
    let names: Vec<_> = told_lines[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"artifact.put") && names.contains(&"help.get") && names.contains(&"memory.add"));
    let own = ["artifact.", "memory.", "help.", "skills.", "html_parser", "render_chart"];
    let is_theirs = |name: &&str| own.iter().any(|own| name.starts_with(own));
    assert!(names.contains(&"html_parser") && names.contains(&"render_chart"));
    assert!(names.iter().all(is_theirs), "{names:?}");
    let (others, nowhere) = told_lines[1..].split_at(7);
    // A tool for other agents is refused with a protocol error, and an unknown name with a result that lists the existing
    // tools.
    for line in others {
        let reason = if line[0] == "web.fetch" { "no_reach" } else { "never" };
        let refused = (&line[1]["result"], &line[1]["error"]["code"], &line[1]["error"]["data"]["reason"]);
        assert_eq!(refused, (&Value::Null, &json!(-32_001), &json!(reason)), "{line}");
    }
    assert_eq!(nowhere.len(), 9);
    for line in nowhere {
        let (name, result) = (line[0].as_str().unwrap(), &line[1]["result"]);
        assert_eq!((&line[1]["error"], &result["isError"]), (&Value::Null, &json!(true)), "{line}");
        let message = format!("there is no tool {name:?}; there are: {}", names.join(", "));
        let envelope = &result["structuredContent"];
        let refused = (&envelope["status"], &envelope["domain_code"], &envelope["message"]);
        assert_eq!(refused, (&json!("error"), &json!("not_found"), &json!(message)), "{line}");
    }
    let denied: Vec<_> = tool_calls(&world).into_iter().filter(|event| event["decision"] == "deny").collect();
    assert_eq!(denied.len(), told_lines.len() - 1, "{denied:?}");
    assert!(denied.iter().all(|event| event["subject_type"] == "sandbox" && event["run_id"].is_string()));
}

#[test]
fn job_without_network_reads_a_supplied_page_that_is_not_recorded_whole() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let read = r#"
page = "<p>" + "much " * 10000 + "<a href=/x>there</a>"
tell(call("html_parser", html_content=page, extract_mode="links", base_url="https://a.example/"))
"#;
    let [told] = &told(&node, &job_of(None, read))[..] else { panic!() };
    assert_eq!(told["data"]["links"], json!([{ "url": "https://a.example/x", "text": "there" }]), "{told}");
    assert_eq!(told["data"]["untrusted"], true);
    let [recorded] = &tool_calls(&world)[..] else { panic!("it is recorded once") };
    assert_eq!(recorded["decision"], "allow", "{recorded}");
    assert!(recorded.to_string().len() < 10_000, "{recorded}");
}

#[test]
fn malformed_or_batched_message_calls_no_tool() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let tries = r#"
put = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "memory.add", "arguments":
       {"task_id": TASK, "job_id": JOB, "key": "k", "content": "c"}}}
tell(send([{**put, "id": 1}, {**put, "id": 2}]))
tell(send(put))
tell(send({**put, "id": None}))
tell(send({**put, "id": 1, "jsonrpc": "1.0"}))
tell(send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"'))
tell(send(b"[" * 100000))
huge = {**put, "id": 1}
huge["params"] = {"name": "memory.add", "arguments": {"task_id": TASK, "job_id": JOB, "key": "k", "content": "x" * (5 << 20)}}
tell(send(huge))
deep = {"a": 1}
for _ in range(200): deep = {"a": deep}
tell(call("memory.add", task_id=TASK, job_id=JOB, key="k", content=deep))
tell(call("memory.list", task_id=TASK, job_id=JOB))
"#;
    let told_lines = told(&node, &job_of(None, tries));
    let (list, refused) = told_lines.split_last().unwrap();
    for line in refused {
        assert_ne!(line["status"], "ok", "{line}");
        assert!(line["result"].is_null(), "{line}");
    }
    assert_eq!(list["data"], json!([]), "none of them stored a note");
}

#[test]
fn job_has_tools_and_a_plain_command_has_none() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let script = format!("{CLIENT}\ntell(ask('tools/list'))");
    let answer = node.run(&belljar_testkit::node::command(&["python3", "-c", &script])).json();
    let text = answer["stdout"].as_str().unwrap();
    assert!(!text.contains("artifact.put"), "{text}");
    // It has no variables for a gateway that doesn't exist.
    let env = node.run(&belljar_testkit::node::command(&["env"])).json();
    let env = env["stdout"].as_str().unwrap();
    assert!(env.contains("BELLJAR_STATUS_SOCKET=") && !env.contains("MCP_GATEWAY_URL"), "{env}");
    // The control.
    let job = job_of(
        None,
        r#"
tell(call("memory.add", task_id=TASK, job_id=JOB, key="k", content="c"))
tell(os.environ["MCP_GATEWAY_URL"])
"#,
    );
    let told = told(&node, &job);
    assert_eq!((&told[0]["status"], &told[1]), (&json!("ok"), &json!("http://127.0.0.1:7070/mcp")));
    let [added] = &tool_calls(&world)[..] else { panic!("it is recorded once") };
    assert_eq!((&added["job_id"], &added["status"]), (&job["job_id"], &json!("success")));
}
