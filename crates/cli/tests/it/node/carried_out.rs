//! Results of jobs.

use super::on_each_database;
use belljar_testkit::node::{Node, command, script, steps};
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn command_runs_sealed_and_its_output_is_returned() {
    on_each_database(
        "node::carried_out::command_runs_sealed_and_its_output_is_returned",
        |world, arguments| {
            let node = Node::start(world, arguments);
            let job = script("echo out; echo err >&2; echo kept > /job/artifacts/file; exit 3");
            let answered = node.run(&job);
            assert_eq!(answered.status, 200);
            let told = answered.json();
            assert_eq!((&told["version"], &told["status"]), (&json!(1), &json!("failed")));
            assert_eq!((&told["task_id"], &told["job_id"]), (&job["task_id"], &job["job_id"]));
            assert_eq!((&told["exit_code"], &told["failure_code"]), (&json!(3), &json!("step_failed")));
            assert_eq!((&told["stdout"], &told["stderr"]), (&json!("out\n"), &json!("err\n")));
            assert_eq!(told["truncated"], json!({ "stdout": false, "stderr": false }));
            assert_eq!(told["artifacts"][0]["path"], "/job/artifacts/file");
            assert_eq!(told["artifacts"][0]["size_bytes"], 5);
            assert_eq!(told["isolation"]["backend"], "native");
            assert!(told["started_at"].is_string() && told["ended_at"].is_string());
            // Later requests return the same record.
            let id = job["job_id"].as_str().unwrap();
            assert_eq!(node.job(id), told);
            assert_eq!(node.story(id), ["accepted 0", "in_progress 1", "failed 1"]);
        },
    );
}

#[test]
fn runner_job_returns_its_result() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = steps(&json!([
        { "type": "write_file", "args": { "path": "a", "content": "text" } },
        { "type": "run_command", "args": { "argv": ["cat", "a"] } },
    ]));
    let told = node.run(&job).json();
    assert_eq!(told["status"], "completed", "{told}");
    assert_eq!(told["exit_code"], 0);
    let result = &told["sba_result"];
    assert_eq!((&result["status"], &result["job_id"]), (&json!("success"), &job["job_id"]));
    assert_eq!(result["steps"][1]["result"]["stdout"], "text");
    // The status is `in_progress` once the runner has read the job, and not before.
    let events = node.events(job["job_id"].as_str().unwrap());
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(&kinds[..3], ["status", "status", "step"]);
    assert_eq!(events[1]["status"], "in_progress");
    assert_eq!(events[2]["line"]["event"], "job_started");
}

#[test]
fn unstartable_program_is_a_job_failure_and_not_a_node_failure() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for (program, exit_code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let told = node.run(&command(&[program])).json();
        assert_eq!(
            (&told["status"], &told["failure_code"]),
            (&json!("failed"), &json!("step_failed")),
            "{told}"
        );
        assert_eq!(told["exit_code"], exit_code);
        assert!(told["failure_message"].as_str().unwrap().contains(program), "{told}");
    }
}

#[test]
fn job_refused_by_policy_does_not_start() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": ["cat", "a"] } }]));
    job["sandbox"]["job_spec"]["constraints"]["allowed_commands"] = json!(["ls"]);
    let told = node.run(&job).json();
    assert_eq!((&told["status"], &told["failure_code"]), (&json!("failed"), &json!("policy_violation")));
    assert_eq!(told["sba_result"]["failure_code"], "policy_violation");
    assert_eq!(node.story(job["job_id"].as_str().unwrap()), ["accepted 0", "failed 1"]);
}

#[test]
fn job_is_killed_at_its_timeout() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = script("echo begun; sleep 60");
    job["sandbox"]["timeout_seconds"] = json!(1);
    let told = node.run(&job).json();
    assert_eq!((&told["status"], &told["failure_code"]), (&json!("timeout"), &json!("timeout")), "{told}");
    assert_eq!(told["stdout"], "begun\n");
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": ["sleep", "60"] } }]));
    job["sandbox"]["timeout_seconds"] = json!(60);
    job["sandbox"]["job_spec"]["constraints"]["max_runtime_seconds"] = json!(1);
    let told = node.run(&job).json();
    assert_eq!(
        (&told["status"], &told["sba_result"]["status"]),
        (&json!("timeout"), &json!("timeout")),
        "{told}"
    );
}

#[test]
fn output_is_kept_up_to_the_contracts_limit() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let told = node
        .run(&script("head -c 262144 /dev/zero | tr '\\0' a; head -c 262145 /dev/zero | tr '\\0' b >&2"))
        .json();
    assert_eq!(told["truncated"], json!({ "stdout": false, "stderr": true }), "{}", told["status"]);
    for stream in ["stdout", "stderr"] {
        assert_eq!(told[stream].as_str().unwrap().len(), 262_144);
    }
    assert_eq!(told["status"], "completed");
}

#[test]
fn node_sets_the_job_ids_and_the_request_the_other_variables() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = command(&["env"]);
    job["sandbox"]["env"] = json!({ "MINE": "yes", "CYNODE_PROMPT": "text" });
    let told = node.run(&job).json();
    let lines: Vec<_> = told["stdout"].as_str().unwrap().lines().collect();
    let task = format!("CYNODE_TASK_ID={}", job["task_id"].as_str().unwrap());
    let id = format!("CYNODE_JOB_ID={}", job["job_id"].as_str().unwrap());
    for line in
        [task.as_str(), id.as_str(), "CYNODE_WORKSPACE_DIR=/workspace", "MINE=yes", "CYNODE_PROMPT=text"]
    {
        assert!(lines.contains(&line), "{line} is not in {lines:?}");
    }
    let of_tests = belljar_testkit::node::TOKEN;
    assert!(!told["stdout"].as_str().unwrap().contains(of_tests));
}

#[test]
fn job_sees_and_reaches_nothing_of_the_node() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let port = node.address().port();
    let reach =
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)' 2>&1");
    let told = node
        .run(&script(&format!(
            "{reach}; cat {0}/token {0}/state/node/node.db 2>&1; id -u",
            world.path().display()
        )))
        .json();
    let out = told["stdout"].as_str().unwrap();
    assert!(
        out.contains("refused") && out.contains("No such file") && !out.contains("SQLite format"),
        "{out}"
    );
    assert_ne!(out.lines().last(), Some("0"));
    // The control: from here the node is reachable.
    assert_eq!(node.get("/healthz").status, 200);
}

#[test]
fn unprivileged_user_can_run_a_node() {
    World::as_everyone(crate::BELLJAR, |world| {
        let node = Node::start(world, &[]);
        assert_eq!(node.run(&script("echo well")).json()["stdout"], "well\n");
    });
}
