//! The commands of `belljar job` without a node: they work on this machine's own state.

use super::command;
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Stdio;

fn job(world: &World, arguments: &[&str]) -> ProgramOutput {
    world.run(&[&["job"], arguments].concat())
}

#[test]
fn job_runs_without_a_node_and_is_listed_later() {
    World::as_everyone(crate::BELLJAR, |world| {
        let script = "echo hello; echo kept > /job/artifacts/note; exit 3";
        let ran = job(world, &["submit", "--", "sh", "-c", script]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("belljar: without --node the job runs here"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("  stdout | hello\n") && ran.stderr.contains("exit code 3"),
            "{}",
            ran.stderr
        );
        let id = ran.stdout.trim();
        assert_eq!(job(world, &["list", "--json"]).succeeded().json()[0]["job_id"], id);
        let shown = job(world, &["show", id, "--json"]).succeeded().json();
        assert_eq!((&shown["status"], &shown["exit_code"]), (&json!("failed"), &json!(3)));
        assert_eq!(job(world, &["logs", id]).succeeded().stdout, "hello\n");
        let watched = job(world, &["watch", id]);
        assert!(watched.code == 1 && watched.stdout.contains("in progress"), "{}", watched.stdout);
        assert!(job(world, &["artifacts", id]).succeeded().stdout.contains("/job/artifacts/note"));
        assert_eq!(job(world, &["submit", "--", "true"]).code, 0);
        assert_eq!(job(world, &["submit", "--timeout", "1", "--", "sleep", "60"]).code, 124);
    });
}

#[test]
fn state_in_use_by_a_node_is_refused_with_a_hint_to_ask_the_node() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for arguments in [&["list"][..], &["submit", "--", "true"]] {
        let ran = job(&world, arguments);
        assert!(ran.code == 125 && ran.stderr.contains("another daemon uses"), "{}", ran.stderr);
        assert!(ran.stderr.contains("Hint: a node serves from that state, or"), "{}", ran.stderr);
    }
    // The control: a request to the node itself.
    let mut asked = command(&world, node.address(), &["list"]);
    assert_eq!(ProgramOutput::from(asked.output().unwrap()).succeeded().stdout, "No jobs.\n");
}

#[test]
fn interrupt_cancels_the_local_job() {
    let world = World::new(crate::BELLJAR);
    let mut submitting = world.command(&["job", "submit", "--", "sh", "-c", "echo begun; sleep 60"]);
    let child =
        submitting.stdout(Stdio::piped()).stderr(std::fs::File::create(world.path().join("said")).unwrap());
    let child = child.spawn().unwrap();
    wait::until(|| world.read("said").contains("stdout | begun"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", world.read("said"));
    let id = String::from_utf8(output.stdout).unwrap();
    let shown = job(&world, &["show", id.trim(), "--json"]).succeeded().json();
    assert_eq!((&shown["status"], &shown["failure_code"]), (&json!("canceled"), &json!("canceled")));
}

#[test]
fn read_only_commands_start_no_waiting_job() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--max-concurrency", "1"]);
    let waiting = new_id();
    let submit = |id: &str, argv: &[&str]| {
        let arguments = [&["submit", "--job-id", id, "--"], argv].concat();
        ProgramOutput::from(command(&world, node.address(), &arguments).output().unwrap()).succeeded();
    };
    let running = new_id();
    submit(&running, &["sleep", "60"]);
    node.wait_for(&running, "in_progress");
    submit(&waiting, &["sleep", "1"]);
    // The node is killed, so that it can't clean up.
    drop(node);
    let shown = |id: &str| job(&world, &["show", id, "--json"]).succeeded().json()["status"].clone();
    assert_eq!((shown(&running), shown(&waiting)), (json!("node_failure"), json!("accepted")));
    let watched = job(&world, &["watch", &waiting]);
    assert!(
        watched.code == 1 && watched.stderr.contains("no node is running that could start it"),
        "{}",
        watched.stderr
    );
    assert_eq!(shown(&waiting), "accepted");
    // The control: a command that runs a job here also runs the waiting ones, and stays until they end.
    assert_eq!(job(&world, &["submit", "--", "true"]).code, 0);
    assert_eq!(shown(&waiting), "completed");
}

#[test]
fn node_configuration_applies_to_local_jobs() {
    let world = World::new(crate::BELLJAR);
    world.write("belljar.yaml", "node:\n  timeouts: {default_seconds: 1, max_seconds: 1}\n");
    let sleep = |arguments: &[&str]| job(&world, &[arguments, &["submit", "--", "sleep", "2"]].concat()).code;
    assert_eq!(sleep(&["--config", "belljar.yaml"]), 124);
    // The control.
    assert_eq!(sleep(&[]), 0);
}
