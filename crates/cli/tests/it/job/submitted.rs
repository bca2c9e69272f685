//! Submitting jobs to a node, and waiting for them.

use super::{ask, command};
use belljar_testkit::node::{Node, new_id, script, steps};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Stdio;

#[test]
fn submit_prints_only_the_id_of_the_accepted_job() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let ran =
        ask(&world, node.address(), &["submit", "--", "sh", "-c", "sleep 1; echo \"$0\"", "a b"]).succeeded();
    assert_eq!(ran.stderr, "");
    let id = ran.stdout.trim();
    // The command has not waited.
    assert!(
        ["accepted", "in_progress"].map(Into::into).contains(&node.job(id)["status"]),
        "{}",
        node.job(id)
    );
    // No shell has parsed it.
    assert_eq!(node.wait_for(id, "completed")["stdout"], "a b\n");
}

#[test]
fn submit_wait_prints_progress_and_exits_with_the_jobs_result() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let wait = |arguments: &[&str]| ask(&world, node.address(), &[&["submit", "--wait"], arguments].concat());
    for (script, code) in [("true", 0), ("exit 7", 1), ("kill -9 $$", 1)] {
        let ran = wait(&["--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{script}: {}", ran.stderr);
    }
    let ran = wait(&["--timeout", "1", "--", "sleep", "60"]);
    assert_eq!(ran.code, 124, "{}", ran.stderr);
    let ran = wait(&["--", "sh", "-c", "echo one; echo two >&2; printf '\\033[2Jthree\\n'"]);
    let said: Vec<_> = ran.stderr.lines().map(|line| line.get(10..).unwrap_or(line)).collect();
    assert_eq!(said[..2], ["accepted", "in progress"]);
    for line in ["stdout | one", "stderr | two", "stdout | \\u{1b}[2Jthree"] {
        assert!(said.contains(&line), "{line} is not among {said:?}");
    }
    assert!(ran.stderr.lines().last().unwrap().starts_with("completed in "), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
    // The JSON output is the job alone.
    let ran = wait(&["--json", "--", "echo", "hello"]).succeeded();
    assert_eq!((&ran.json()["status"], &ran.json()["stdout"]), (&json!("completed"), &json!("hello\n")));
}

#[test]
fn steps_of_a_job_are_printed_as_they_end() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let step = |id: &str, argv: &[&str]| json!({ "id": id, "type": "run_command", "args": { "argv": argv } });
    let job = steps(&json!([step("good", &["true"]), step("bad", &["false"])]));
    world.write("job.json", job["sandbox"]["job_spec"].to_string());
    let ran = ask(&world, node.address(), &["submit", "--wait", "job.json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("step 1  run_command  good"), "{}", ran.stderr);
    assert!(ran.stderr.contains("step 2  ✗"), "{}", ran.stderr);
}

#[test]
fn request_or_runner_job_is_submitted_from_a_file_or_standard_input() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let request = script("echo \"$GREETING\"");
    world.write("request.json", request.to_string());
    let ran = ask(&world, node.address(), &["submit", "--wait", "request.json", "-e", "GREETING=hello"])
        .succeeded();
    let id = request["job_id"].as_str().unwrap();
    assert_eq!(ran.stdout.trim(), id);
    assert_eq!(node.job(id)["stdout"], "hello\n");
    let job = steps(&json!([{ "type": "write_file", "args": { "path": "a", "content": "b" } }]));
    let mut child = command(&world, node.address(), &["submit", "--wait", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let document = job["sandbox"]["job_spec"].to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), document.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let told = node.job(job["job_id"].as_str().unwrap());
    assert_eq!((&told["status"], &told["task_id"]), (&json!("completed"), &job["task_id"]));
}

#[test]
fn submit_options_reach_the_node() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let (task, job) = (new_id(), new_id());
    let arguments = [
        "submit",
        "--json",
        "--task-id",
        &task,
        "--job-id",
        &job,
        "--max-attempts",
        "3",
        "--timeout",
        "2m",
        "--image",
        "native",
        "--idempotency-key",
        "one",
        "--env",
        "A=b",
        "--",
        "sh",
        "-c",
        "echo $A",
    ];
    let told = ask(&world, node.address(), &arguments).succeeded().json();
    assert_eq!(
        (&told["task_id"], &told["job_id"], &told["max_attempts"]),
        (&json!(task), &json!(job), &json!(3))
    );
    let done = node.wait_for(&job, "completed");
    assert_eq!(done["stdout"], "b\n");
    // A repeated submission returns the first job.
    assert_eq!(
        ask(&world, node.address(), &arguments).succeeded().json()["outcome_sha256"],
        done["outcome_sha256"]
    );
    // Another job with that idempotency key is refused.
    let other = ask(&world, node.address(), &["submit", "--idempotency-key", "one", "--", "true"]);
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert_eq!(node.get("/v1/worker/jobs").json()["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn interrupted_wait_reports_that_the_nodes_job_continues() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = new_id();
    let arguments = ["submit", "--wait", "--job-id", &job, "--", "sh", "-c", "sleep 2; echo done"];
    let child = command(&world, node.address(), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait::until(|| node.job(&job)["status"] == "in_progress");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("`belljar job cancel {job}` stops it")), "{said}");
    assert_eq!(node.wait_for(&job, "completed")["stdout"], "done\n");
}
