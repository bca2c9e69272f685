//! Results are always complete JSON, with a matching exit code.

use crate::scene::{JOB_ID, Scene, TASK_ID, job, run_on_stdin, sh, step, wait_until};
use serde_json::{Value, json};

#[test]
fn steps_run_in_order_and_the_result_lists_each() {
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
fn stdin_mode_writes_only_the_result_to_stdout() {
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
fn status_file_ends_with_the_jobs_outcome() {
    let scene = Scene::new();
    let status = |scene: &Scene| -> Value {
        serde_json::from_slice(&std::fs::read(scene.beside("status.json")).unwrap()).unwrap()
    };
    let sees_itself = sh("cat ../status.json");
    let ran = scene.run(&job(vec![sees_itself]));
    let meanwhile: Value = serde_json::from_str(ran.step(0)["result"]["stdout"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&meanwhile["status"], &status(&scene)["status"]),
        (&json!("in_progress"), &json!("completed"))
    );
    let mut slow = job(vec![sh("sleep 600")]);
    slow["constraints"]["max_runtime_seconds"] = json!(1);
    for (job, expected) in [(job(vec![sh("exit 1")]), "failed"), (slow, "timeout")] {
        let _ran = scene.run(&job);
        assert_eq!(status(&scene)["status"], expected);
    }
    // A job that never begins leaves no status file, and an old one no longer reports it as in progress.
    std::fs::write(scene.beside("status.json"), r#"{"version":1,"status":"in_progress"}"#).unwrap();
    let _ran = scene.run_document(b"{}");
    assert_eq!(status(&scene)["status"], "failed");
    std::fs::remove_file(scene.beside("status.json")).unwrap();
    let _ran = scene.run_document(b"{}");
    assert!(!scene.beside("status.json").exists());
}

#[test]
fn first_failing_step_ends_the_job() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![sh("echo before; exit 3"), sh("touch never")]));
    assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "step_failed"));
    assert_eq!(ran.result["steps"].as_array().unwrap().len(), 1);
    assert_eq!(ran.step(0)["result"]["exit_code"], 3);
    assert_eq!(ran.step(0)["result"]["stdout"], "before\n");
    assert!(!scene.inside("never").exists());
}

#[test]
fn unreachable_host_is_named_and_loopback_is_no_network_need() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![sh("echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6")]));
    assert_eq!(ran.outcome(), "ext_net_required");
    assert!(ran.result["failure_message"].as_str().unwrap().contains("example.com"));
    assert_eq!(ran.step(0)["result"]["exit_code"], 6);
    let local = "echo 'curl: (7) Failed to connect to localhost port 1 after 0 ms: refused' >&2; exit 7";
    assert_eq!(scene.run(&job(vec![sh(local)])).outcome(), "step_failed");
    let harmless = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 0";
    assert_eq!(scene.run(&job(vec![sh(harmless)])).outcome(), "success");
}

#[test]
fn unknown_arguments_run_nothing_and_are_not_reported_as_a_malformed_job() {
    let scene = Scene::new();
    std::fs::write(scene.beside("job.json"), job(vec![sh("touch ran")]).to_string()).unwrap();
    let output = scene.command().arg("--frobnicate").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--frobnicate"));
    assert!(!scene.inside("ran").exists() && !scene.beside("result.json").exists());
}

#[test]
fn unreadable_job_is_an_internal_error_with_an_incident_id() {
    let scene = Scene::new();
    let output = scene.command().output().unwrap();
    let result: Value = serde_json::from_slice(&std::fs::read(scene.beside("result.json")).unwrap()).unwrap();
    assert_eq!((output.status.code(), &result["failure_code"]), (Some(1), &json!("internal_error")));
    let message = result["failure_message"].as_str().unwrap();
    let incident = message.split("incident ").nth(1).unwrap().get(..36).unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains(incident), "the log has it too");
    // A FIFO in its place doesn't block.
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.beside("job.json"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(scene.command().output().unwrap().status.code(), Some(1));
}

#[test]
fn result_that_cannot_be_written_goes_into_the_log() {
    let scene = Scene::new();
    std::fs::write(scene.beside("job.json"), job(vec![sh("touch ran")]).to_string()).unwrap();
    let mut command = scene.command();
    let output = command.arg("--result=/proc/result.json").output().unwrap();
    // A repeated option is an error; the path is given anew.
    assert_eq!(output.status.code(), Some(1));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cynode-sba"))
        .args(["--allow-root", "--job"])
        .arg(scene.beside("job.json"))
        .arg("--workspace")
        .arg(scene.beside("workspace"))
        .arg("--result=/proc/result.json")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stdout).unwrap();
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(line["result"]["failure_code"], "node_failure", "{log}");
    let message = line["result"]["failure_message"].as_str().unwrap();
    assert!(message.contains("/proc must be a directory that uid"), "{message}");
    assert!(!scene.inside("ran").exists(), "a job whose result would be lost doesn't run");
}

#[test]
fn missing_workspace_is_reported_as_a_node_failure() {
    let scene = Scene::new();
    std::fs::write(scene.beside("job.json"), job(vec![sh("touch ran")]).to_string()).unwrap();
    std::fs::remove_dir_all(scene.beside("workspace")).unwrap();
    let output = scene.command().output().unwrap();
    let result: Value = serde_json::from_slice(&std::fs::read(scene.beside("result.json")).unwrap()).unwrap();
    assert_eq!(
        (output.status.code(), &result["failure_code"]),
        (Some(1), &json!("node_failure")),
        "{result}"
    );
    let message = result["failure_message"].as_str().unwrap();
    assert!(message.contains("there is no workspace") && message.contains("--workspace"), "{message}");
    // The control: with one the job runs.
    std::fs::create_dir(scene.beside("workspace")).unwrap();
    assert_eq!(scene.command().output().unwrap().status.code(), Some(0));
}

#[test]
fn a_step_can_neither_forge_nor_prevent_the_result() {
    let forge = r#"{"status":"success","forged":true}"#;
    for attack in [
        format!("echo '{forge}' >../result.json"),
        format!("for f in ../.belljar-*; do rm $f; echo '{forge}' >$f; done"),
        "rm -f ../.belljar-*".to_owned(),
        "mkdir -p ../result.json/full".to_owned(),
        "ln -s /etc/passwd ../result.json".to_owned(),
        "mkfifo ../result.json".to_owned(),
    ] {
        let scene = Scene::new();
        let ran = scene.run(&job(vec![sh(&format!("{attack}; exit 7"))]));
        assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "step_failed"), "{attack}: {ran:#?}");
        assert_eq!(ran.step(0)["result"]["exit_code"], 7, "{attack}");
        assert!(std::fs::symlink_metadata(scene.beside("result.json")).unwrap().is_file());
    }
}

#[test]
fn result_of_an_earlier_run_is_removed_at_start() {
    let scene = Scene::new();
    std::fs::write(scene.beside("result.json"), "earlier").unwrap();
    let child = scene.start(&job(vec![sh("touch here; sleep 1000")]));
    wait_until("the step is at work", || scene.inside("here").exists());
    assert!(!scene.beside("result.json").exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(scene.finish(child).outcome(), "canceled");
}

#[test]
fn sigterm_while_waiting_for_the_job_results_in_canceled() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_cynode-sba"))
        .args(["--stdin", "--allow-root", "--workspace", "/"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let stdin = child.stdin.take();
    let handles_signals = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap() & (1 << 14) != 0
    };
    wait_until("it handles SIGTERM", handles_signals);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &result["failure_code"]), (Some(1), &json!("canceled")));
    assert_eq!(result["job_id"], Value::Null);
}
