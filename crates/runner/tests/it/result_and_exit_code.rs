//! A result is complete JSON whatever happened, and the exit code says the same.

use crate::scene::{JOB_ID, Scene, TASK_ID, job, run_on_stdin, sh, step};
use serde_json::{Value, json};

#[test]
fn steps_run_in_order_and_the_result_tells_of_each() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![
        step("write_file", json!({ "path": "src/a.txt", "content": "one\ntwo\nthree\n" })),
        step("read_file", json!({ "path": "/workspace/src/a.txt", "start_line": 2, "end_line": 2 })),
        step("run_command", json!({ "argv": ["cat", "a.txt"], "cwd": "src" })),
    ]));
    assert_eq!((ran.exit_code, ran.outcome()), (Some(0), "success"), "{ran:#?}");
    assert_eq!(ran.result["job_id"], JOB_ID);
    assert_eq!(ran.result["task_id"], TASK_ID);
    assert_eq!(ran.step(1)["result"]["content"], "two\n");
    assert_eq!(ran.step(2)["result"]["stdout"], "one\ntwo\nthree\n");
    let events: Vec<Value> = ran.events().iter().map(|event| event["event"].clone()).collect();
    let step_events = ["step_started", "step_finished"];
    let expected: Vec<&str> =
        ["job_started"].into_iter().chain(step_events.repeat(3)).chain(["job_finished"]).collect();
    assert_eq!(events, expected);
}

#[test]
fn on_stdin_the_job_comes_in_and_on_stdout_nothing_but_the_result_goes_out() {
    let scene = Scene::new();
    let output = run_on_stdin(&scene, &serde_json::to_vec(&job(vec![sh("echo out; echo err >&2")])).unwrap());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["steps"][0]["result"]["stdout"], "out\n");
    assert_eq!(output.status.code(), Some(0));
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap().is_object(), "{line}");
    }
}

#[test]
fn the_first_step_that_fails_ends_the_job() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![sh("echo before; exit 3"), sh("touch never")]));
    assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "step_failed"));
    assert_eq!(ran.result["steps"].as_array().unwrap().len(), 1);
    assert_eq!(ran.step(0)["result"]["exit_code"], 3);
    assert_eq!(ran.step(0)["result"]["stdout"], "before\n");
    assert!(!scene.inside("never").exists());
}
