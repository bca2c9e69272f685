//! After the end of a step, no process of it runs any more, whatever the step did to stay.

use crate::scene::{SOON, Scene, job, job_within, sh, somebody_runs, step, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Instant;

/// A mark that only this test's processes carry.
fn fresh_mark() -> String {
    format!("mark-{}", uuid::Uuid::new_v4().simple())
}

/// Returns shell commands that leave a process running, each of which has the mark in its command line.
fn ways_to_stay(mark: &str) -> Vec<String> {
    let stay = format!("exec -a {mark} sleep 1000");
    [
        format!("({stay}) &"),
        format!("(({stay}) &) &"),
        format!("setsid bash -c '{stay}' &"),
        format!("(setsid bash -c '(setsid bash -c \"{stay}\" &)' &)"),
        format!("bash -c 'trap \"\" TERM HUP INT QUIT; bash -c \"{stay}\" {mark}' {mark} &"),
        format!("bash -c 'kill -STOP $$' {mark} &"),
        format!("({stay}) >/dev/null 2>&1 </dev/null & disown"),
        format!("set -m; ({stay}) &"),
    ]
    .to_vec()
}

fn bash(script: &str) -> Value {
    step("run_command", json!({ "argv": ["bash", "-c", script] }))
}

#[test]
fn processes_left_by_a_step_are_killed_and_do_not_delay_its_result() {
    let scene = Scene::new();
    for way in ways_to_stay("MARK") {
        let mark = fresh_mark();
        let script = format!("{}\nsleep 0.1; echo done", way.replace("MARK", &mark));
        let started = Instant::now();
        let entry = scene.run_step(bash(&script));
        assert_eq!(entry["status"], "success", "{way}: {entry}");
        assert_eq!(entry["result"]["stdout"], "done\n", "{way}");
        assert!(started.elapsed() < SOON, "{way}: an orphan's pipe delayed the result");
        assert!(!somebody_runs(&mark), "{way}");
    }
}

#[test]
fn daemonizing_scripts_survive_outside_the_runner() {
    for way in ways_to_stay("MARK") {
        let mark = fresh_mark();
        let script = format!("{}\nsleep 0.1", way.replace("MARK", &mark));
        // A session of its own for the control, so that it can be ended by its mark alone.
        assert!(
            std::process::Command::new("bash")
                .args(["-c", &script])
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap()
                .success()
        );
        wait_until("the control runs", || somebody_runs(&mark));
        for pid in pids_of(&mark) {
            let _ = kill_process(pid, Signal::KILL);
        }
        wait_until("the control is gone", || !somebody_runs(&mark));
    }
}

fn pids_of(mark: &str) -> Vec<Pid> {
    let listed = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command_line).contains(mark)
    })
    .filter_map(Pid::from_raw)
    .collect()
}

#[test]
fn step_timeout_kills_the_process_tree_and_keeps_the_output() {
    let scene = Scene::new();
    for way in ways_to_stay("MARK") {
        let mark = fresh_mark();
        let script = format!("echo before\n{}\nexec -a {mark} sleep 1000", way.replace("MARK", &mark));
        let args = json!({ "argv": ["bash", "-c", script], "timeout_seconds": 1 });
        let ran = scene.run(&job(vec![step("run_command", args), sh("touch never")]));
        assert_eq!((ran.exit_code, ran.outcome()), (Some(124), "timeout"), "{way}: {ran:#?}");
        assert_eq!(ran.result["status"], "timeout");
        assert_eq!(ran.step(0)["error"]["type"], "timeout");
        assert_eq!(ran.step(0)["result"]["stdout"], "before\n");
        assert_eq!(ran.step(0)["result"]["signal"], 9);
        assert!(!somebody_runs(&mark), "{way}");
        assert!(!scene.inside("never").exists());
    }
}

#[test]
fn job_time_limit_applies_across_steps() {
    let scene = Scene::new();
    let constraints = json!({ "max_runtime_seconds": 1, "max_output_bytes": 1000 });
    let patient = json!({ "argv": ["sleep", "1000"], "timeout_seconds": 900 });
    let ran = scene.run(&job_within(constraints, vec![sh("true"), step("run_command", patient)]));
    assert_eq!((ran.exit_code, ran.outcome()), (Some(124), "timeout"));
    assert!(ran.result["failure_message"].as_str().unwrap().contains("max_runtime_seconds"));
}

#[test]
fn step_timeout_ends_busy_blocked_and_stopped_programs() {
    let scene = Scene::new();
    let waits = [
        "while :; do :; done",
        "mkfifo f; cat f",
        "exec 9>lock; flock 9; flock lock true",
        "kill -STOP $$",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
    ];
    for wait in waits {
        let args = json!({ "argv": ["bash", "-c", wait], "timeout_seconds": 1 });
        let ran = scene.run(&job(vec![step("run_command", args)]));
        assert_eq!(ran.outcome(), "timeout", "{wait}");
        let took = ran.step(0)["duration_ms"].as_u64().unwrap();
        assert!((1000..10_000).contains(&took), "{wait} took {took} ms");
        let _ = std::fs::remove_file(scene.inside("f"));
    }
}

#[test]
fn output_flood_is_cut_at_the_limit_in_little_memory() {
    let scene = Scene::new();
    let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 100_000 });
    for flood in ["exec cat /dev/zero", "yes", "yes >&2", "cat /dev/zero & yes >&2", "head -c 10G /dev/zero"]
    {
        let ran = scene.run_in_little_memory(&job_within(constraints.clone(), vec![bash(flood)]));
        assert_eq!(ran.outcome(), "constraint_violation", "{flood}");
        let output = &ran.step(0)["result"];
        let kept = output["stdout"].as_str().unwrap().len().max(output["stderr"].as_str().unwrap().len());
        assert_eq!(kept, 100_000, "{flood}");
    }
}

#[test]
fn a_fork_bomb_ends_with_its_step() {
    let scene = Scene::new();
    let mark = fresh_mark();
    // Each one leaves its parent, its session and its group, and a hundred of them are there at any time.
    let bomb = "i=$1; [ $i -gt 0 ] || exit; for _ in 1 2; do setsid bash bomb $((i-1)) $2 & done; sleep 1000";
    scene.write("bomb", bomb);
    let args = json!({ "argv": ["bash", "bomb", "6", mark], "timeout_seconds": 1 });
    let ran = scene.run(&job(vec![step("run_command", args)]));
    assert_eq!(ran.outcome(), "timeout");
    assert!(!somebody_runs(&mark));
}

#[test]
fn a_step_can_neither_stop_nor_kill_nor_trace_the_runner() {
    let scene = Scene::new();
    let attack =
        "kill -STOP $PPID; kill -KILL $PPID; readlink /proc/$PPID/fd/0; echo >/proc/$PPID/mem; echo survived";
    let ran = scene.run(&job(vec![bash(attack)]));
    assert_eq!(ran.outcome(), "success", "{ran:#?}");
    assert_eq!(ran.step(0)["result"]["stdout"], "survived\n");
    let complaints = ran.step(0)["result"]["stderr"].as_str().unwrap();
    assert_eq!(complaints.matches("Operation not permitted").count(), 2, "{complaints}");
    assert_eq!(complaints.matches("/mem: Permission denied").count(), 1, "{complaints}");
    // The control: a process may do all that to its children and itself.
    let allowed = "sleep 1000 & kill -STOP $!; kill -KILL $!; readlink /proc/$$/fd/0; : >>/proc/$$/mem";
    let control = scene.run_step(bash(allowed));
    assert_eq!(control["result"]["stdout"], "/dev/null\n");
    let complaints = control["result"]["stderr"].as_str().unwrap();
    assert!(!complaints.contains("permitted") && !complaints.contains("denied"), "{complaints}");
}

#[test]
fn a_step_cannot_limit_slow_down_or_pin_the_runner() {
    let scene = Scene::new();
    let attack = |pid: &str| {
        format!(
            "prlimit --pid {pid} --nofile=3:3; prlimit --pid {pid} --cpu=1:1; renice -n 19 -p {pid}; \
             ionice -c 3 -p {pid}; taskset -p 1 {pid}; chrt --idle -p 0 {pid}; true"
        )
    };
    let script = format!("{}; setsid sleep 1000 & echo done", attack("$PPID"));
    let ran = scene.run(&job(vec![bash(&script), sh("echo next")]));
    assert_eq!(ran.outcome(), "success", "{ran:#?}");
    let complaints = ran.step(0)["result"]["stderr"].as_str().unwrap();
    assert_eq!(complaints.matches("Operation not permitted").count(), 6, "{complaints}");
    // The control: a process may do all that to its children. This one has stopped itself before, so that it opens no file that
    // its new limit could be too small for.
    let stopped = "until grep -q '^State:.T' /proc/$!/status; do :; done";
    let control = scene.run_step(bash(&format!("(kill -STOP $BASHPID) & {stopped}; {}", attack("$!"))));
    assert_eq!(control["result"]["stderr"], "");
}

#[test]
fn sigterm_ends_the_step_and_the_result_is_canceled() {
    for signal in [Signal::TERM, Signal::INT] {
        let scene = Scene::new();
        let mark = fresh_mark();
        let script =
            format!("echo partial; (setsid bash -c 'exec -a {mark} sleep 1000' &); touch here; sleep 1000");
        let child = scene.start(&job(vec![bash(&script), sh("touch never")]));
        wait_until("the step is at work", || scene.inside("here").exists() && somebody_runs(&mark));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = scene.finish(child);
        assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "canceled"), "{ran:#?}");
        assert_eq!(ran.step(0)["result"]["stdout"], "partial\n");
        assert!(!somebody_runs(&mark));
        assert!(!scene.inside("never").exists());
    }
}
