//! A complete repair on a node: an agent finds and fixes a bug in a small project, and keeps the result for the task.

use super::told::configuration;
use crate::models::{configure, recorded};
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::{Node, steps};
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};

const PROGRAM: &str = "def mean(values):\n    return sum(values) / (len(values) - 1)\n";
const MENDED: &str = "def mean(values):\n    return sum(values) / len(values)\n";
/// The fixed file in Base64.
const MENDED_BASE64: &str = "ZGVmIG1lYW4odmFsdWVzKToKICAgIHJldHVybiBzdW0odmFsdWVzKSAvIGxlbih2YWx1ZXMpCg==";
const TESTS: &str = "import unittest\nfrom mean import mean\n\nclass Mean(unittest.TestCase):\n    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n";

fn run_tests() -> Value {
    json!({ "argv": ["python3", "-m", "unittest", "-q"] })
}

/// Returns a job whose steps write the project; the rest is up to the agent.
fn job() -> Value {
    let write = |path: &str, content: &str| json!({ "type": "write_file", "args": { "path": path, "content": content } });
    let mut job = steps(&json!([write("mean.py", PROGRAM), write("test_mean.py", TESTS)]));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["inference"] = json!({ "allowed_models": ["small"] });
    spec["context"] = json!({
        "task_context": "The mean of a list comes out wrong.",
        "requirements": ["mean() returns the arithmetic mean"],
        "acceptance_criteria": [{ "text": "the tests pass", "check": run_tests() }],
    });
    job
}

/// A typical course: the first command fails, and so do the tests before the repair. One tool that it tries doesn't exist for
/// agents.
fn way() -> Script {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    let done = |id: u32| call("todo_update", json!({ "id": id, "status": "done", "reason": "it was done" }));
    Script::queue([
        call("run_command", json!({ "argv": ["pytest-of-another-world"] })),
        call("run_command", run_tests()),
        call("write_file", json!({ "path": "mean.py", "content": MENDED })),
        call("run_command", run_tests()),
        call("artifact_put", json!({ "path": "mean.py", "content_bytes_base64": MENDED_BASE64 })),
        call("sandbox_exec", json!({ "argv": ["id"] })),
        done(3),
        call("finish", json!({ "summary": "the mean is right" })),
    ])
}

fn is_without_artifacts(job: &Value) -> bool {
    job["artifacts"].as_array().is_none_or(Vec::is_empty)
}

#[test]
fn agent_repairs_a_project_proves_it_and_its_artifacts_are_kept() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(way());
    let orchestrator = Orchestrator::start();
    let config = configure(&world, &server);
    let mut with_callbacks: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
    with_callbacks["node"] = configuration(&world, &orchestrator.url("/status"));
    world.write("config.yaml", with_callbacks.to_string());
    let node = Node::start(&world, &["--config", &config]);
    let job = job();
    let told = node.run(&job).json();
    let result = &told["sba_result"];
    assert_eq!(result["status"], "success", "{}", result["agent"]);
    let agent = &result["agent"];
    assert_eq!(agent["answer"], "the mean is right");
    assert_eq!(agent["failed_tool_calls"], 3, "no such program, a failing test, no such tool: {agent}");
    assert!(agent["todo"].as_array().unwrap().iter().all(|item| item["status"] == "done"), "{agent}");
    let verified = &agent["verification"][0];
    assert_eq!((&verified["met"], &verified["by"]), (&json!(true), &json!("command")), "{agent}");
    assert!(verified["evidence"].as_str().unwrap().contains("OK"), "{verified}");
    let calls = recorded(&world.path().join("state/node/audit"), "tool_called");
    let [put] = &calls[..] else { panic!("one call reached the gateway: {calls:?}") };
    assert_eq!((&put["tool_name"], &put["status"]), (&json!("artifact.put"), &json!("success")));
    assert_eq!(put["job_id"], job["job_id"]);
    // The file that it has put into its task is the job's artifact.
    let [left] = &told["artifacts"].as_array().unwrap()[..] else { panic!("one artifact: {told:#}") };
    assert_eq!((&left["path"], &left["size_bytes"]), (&json!("mean.py"), &json!(MENDED.len())));
    assert_eq!(result["artifacts"], told["artifacts"]);
    let id = job["job_id"].as_str().unwrap();
    let content = format!("/v1/worker/jobs/{id}/artifacts/{}", left["sha256"].as_str().unwrap());
    assert_eq!(node.get(&content).body, MENDED.as_bytes());
    // Callbacks and the command line report it, too; before the end there is none.
    wait::until(|| node.job(id)["acknowledged_at"].is_string());
    let received = orchestrator.received();
    let (last, before) = received.split_last().unwrap();
    assert_eq!(last.body["event"]["status"], "completed");
    assert_eq!(last.body["job"]["artifacts"], told["artifacts"]);
    assert!(!before.is_empty() && before.iter().all(|message| is_without_artifacts(&message.body["job"])));
    let address = format!("http://{}", node.address());
    let shown = world.run(&["job", "show", id, "--node", &address, "--token-file", "token", "--json"]);
    assert_eq!(shown.succeeded().json()["artifacts"], told["artifacts"]);
}
