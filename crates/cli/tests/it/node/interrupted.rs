//! A node that dies, or stops, under its jobs.

use super::{on_each_database, processes_with};
use belljar_testkit::node::{Node, command, script, steps};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[test]
fn a_job_under_a_node_that_was_killed_is_over_and_nothing_of_it_is_left() {
    on_each_database(
        "node::interrupted::a_job_under_a_node_that_was_killed_is_over_and_nothing_of_it_is_left",
        |world, arguments| {
            let mut node = Node::start(world, arguments);
            // A number that no other test sleeps for.
            let mark = format!("sleep {}", 100_000 + std::process::id());
            let id = node.submit(script(&mark));
            node.wait_for(&id, "in_progress");
            wait::until(|| processes_with(&mark) > 0);
            node.killed_and_started();
            let told = node.job(&id);
            assert_eq!(
                (&told["status"], &told["failure_code"]),
                (&json!("node_failure"), &json!("node_failure"))
            );
            wait::until(|| processes_with(&mark) == 0);
            assert_eq!(node.story(&id), ["accepted 0", "in_progress 1", "node_failure 1"]);
            let runs = std::fs::read_dir(world.path().join("state/node/runs")).unwrap().count();
            assert_eq!(runs, 0);
            assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
        },
    );
}

#[test]
fn jobs_that_waited_are_carried_out_by_the_next_and_one_that_may_be_repeated_is() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &["--max-concurrency", "1"]);
    let mut repeatable = script("sleep 1; echo $CYNODE_JOB_ID");
    repeatable["max_attempts"] = json!(2);
    let first = node.submit(repeatable);
    let waiting: Vec<_> = (0..3).map(|number| node.submit(script(&format!("echo {number}")))).collect();
    node.wait_for(&first, "in_progress");
    node.killed_and_started();
    assert_eq!(node.wait_for(&first, "completed")["stdout"], format!("{first}\n"));
    assert_eq!(
        node.story(&first),
        ["accepted 0", "in_progress 1", "accepted 1", "in_progress 2", "completed 2"]
    );
    for (number, id) in waiting.iter().enumerate() {
        assert_eq!(node.wait_for(id, "completed")["stdout"], format!("{number}\n"));
        assert_eq!(node.story(id), ["accepted 0", "in_progress 1", "completed 1"]);
    }
}

/// Whether a file is in the workspace of some run.
fn has_workspace_file(world: &World, name: &str) -> bool {
    let runs = std::fs::read_dir(world.path().join("state/node/runs")).into_iter().flatten().flatten();
    runs.map(|run| run.path().join("private/workspace").join(name)).any(|path| path.exists())
}

#[test]
fn job_of_a_node_that_was_killed_half_way_goes_on_after_the_steps_that_were_done() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let run = |text: &str| json!({ "type": "run_command", "args": { "argv": ["sh", "-c", text] } });
    let mut job = steps(&json!([
        run("echo once >> /job/artifacts/count; echo kept > file"),
        run("if [ -e waited ]; then cat file; else touch waited; sleep 600; fi"),
        run("rm waited"),
    ]));
    job["max_attempts"] = json!(2);
    let id = node.submit(job);
    node.wait_for(&id, "in_progress");
    wait::until(|| has_workspace_file(&world, "waited"));
    node.killed_and_started();
    let told = node.wait_for(&id, "completed");
    let result = &told["sba_result"];
    assert_eq!(
        (&result["resumed"]["steps_taken_over"], &result["resumed"]["step_run_again"]),
        (&json!(1), &json!("step-2")),
        "{told:#}"
    );
    assert_eq!(result["steps"][1]["result"]["stdout"], "kept\n", "{told:#}");
    assert_eq!(told["artifacts"][0]["size_bytes"], 5, "the first step was carried out once: {told:#}");
    assert_eq!(
        node.story(&id),
        ["accepted 0", "in_progress 1", "accepted 1", "in_progress 2", "completed 2"]
    );
    let runs = world.path().join("state/node/runs");
    wait::until(|| std::fs::read_dir(&runs).is_ok_and(|mut left| left.next().is_none()));
}

#[test]
fn what_was_left_to_a_next_attempt_goes_when_there_is_none() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let step = json!({ "type": "run_command", "args": { "argv": ["sh", "-c", "touch waited; sleep 600"] } });
    let mut job = steps(&json!([step]));
    job["max_attempts"] = json!(2);
    let id = node.submit(job);
    for attempt in 1..=2 {
        wait::until(|| node.job(&id)["attempt"] == attempt && has_workspace_file(&world, "waited"));
        node.killed_and_started();
    }
    assert_eq!(node.wait_for(&id, "node_failure")["attempt"], 2);
    assert_eq!(std::fs::read_dir(world.path().join("state/node/runs")).unwrap().count(), 0);
}

#[test]
fn a_node_that_is_asked_to_stop_ends_its_jobs_and_says_so() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &["--max-concurrency", "1"]);
    let running = node.submit(script("sleep 100"));
    let waiting = node.submit(script("echo later"));
    node.wait_for(&running, "in_progress");
    assert_eq!(node.stopped_and_started(), Some(0));
    assert_eq!(node.wait_for(&running, "node_failure")["failure_code"], "node_failure");
    assert_eq!(node.wait_for(&waiting, "completed")["stdout"], "later\n");
}

#[test]
fn a_node_whose_launcher_is_gone_ends_so_that_it_is_started_again_and_nothing_is_lost() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let running = node.submit(script("sleep 100"));
    node.wait_for(&running, "in_progress");
    // The first of its children is what all others are of.
    let own = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let launcher = own(node.pid()).split_whitespace().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(launcher).unwrap(), Signal::KILL).unwrap();
    assert_eq!(node.ended(), Some(125));
    assert!(node.log().contains("nothing can be begun any more"), "{}", node.log());
    node.killed_and_started();
    assert_eq!(node.wait_for(&running, "node_failure")["attempt"], 1);
    assert_eq!(node.run(&script("echo again")).json()["stdout"], "again\n");
}
