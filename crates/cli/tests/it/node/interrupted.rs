//! A node that dies or stops while its jobs run.

use super::{on_each_database, processes_with};
use crate::models::configure;
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::{Node, command, script, steps};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn job_of_a_killed_node_fails_and_leaves_nothing_behind() {
    on_each_database(
        "node::interrupted::job_of_a_killed_node_fails_and_leaves_nothing_behind",
        |world, arguments| {
            let mut node = Node::start(world, arguments);
            // A duration that no other test sleeps for.
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
fn waiting_and_repeatable_jobs_are_run_by_the_next_node() {
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

/// Returns true if a file is in the workspace of some run.
fn has_workspace_file(world: &World, name: &str) -> bool {
    let runs = std::fs::read_dir(world.path().join("state/node/runs")).into_iter().flatten().flatten();
    runs.map(|run| run.path().join("private/workspace").join(name)).any(|path| path.exists())
}

#[test]
fn job_of_a_killed_node_resumes_after_its_finished_steps() {
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
    assert_eq!(told["artifacts"][0]["size_bytes"], 5, "the first step ran once: {told:#}");
    assert_eq!(
        node.story(&id),
        ["accepted 0", "in_progress 1", "accepted 1", "in_progress 2", "completed 2"]
    );
    let runs = world.path().join("state/node/runs");
    wait::until(|| std::fs::read_dir(&runs).is_ok_and(|mut left| left.next().is_none()));
}

/// Returns a model that doesn't respond to the third request.
fn interrupted_way() -> Script {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    let done = |id: u32| call("todo_update", json!({ "id": id, "status": "done" }));
    let found = json!({ "criterion": 1, "met": true, "evidence": "I have looked at it" });
    Script::queue([
        call("todo_add", json!({ "titles": ["lay the base", "build the wall"], "part_of": 1 })),
        done(2),
        Answer::text("never").after(Duration::from_secs(600)),
        done(3),
        done(1),
        call("finish", json!({ "summary": "the wall stands" })),
        call("report_criteria", json!({ "results": [found] })),
    ])
}

#[test]
fn agent_of_a_killed_node_resumes_from_its_todo_list() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(interrupted_way());
    let config = configure(&world, &server);
    let mut node = Node::start(&world, &["--config", &config]);
    let mut job = steps(&json!([]));
    job["max_attempts"] = json!(2);
    job["sandbox"]["job_spec"]["inference"] = json!({ "allowed_models": ["small"] });
    job["sandbox"]["job_spec"]["context"] = json!({ "requirements": ["there is a wall"] });
    let id = node.submit(job);
    let asked = || {
        let requests = server.requests().into_iter().filter(|request| request.operation().generates());
        requests.map(|request| request.json()["messages"].to_string()).collect::<Vec<_>>()
    };
    wait::until(|| asked().len() == 3);
    node.killed_and_started();
    let told = node.wait_for(&id, "completed");
    assert_eq!(told["attempt"], 2, "{told:#}");
    let agent = &told["sba_result"]["agent"];
    assert_eq!((&agent["resumed"], &agent["answer"]), (&json!(true), &json!("the wall stands")), "{agent}");
    let asked = asked();
    assert_eq!(asked.len(), 7, "{agent}");
    let states = ["- [x] 2. lay the base", "- [ ] 3. build the wall"];
    assert!(
        asked[3].contains("was interrupted") && states.iter().all(|state| asked[3].contains(state)),
        "{}",
        asked[3]
    );
    // The control: the first attempt began with neither.
    assert!(!asked[0].contains("was interrupted") && !asked[0].contains("lay the base"), "{}", asked[0]);
    let todo = agent["todo"].as_array().unwrap();
    assert!(todo.len() == 3 && todo.iter().all(|item| item["status"] == "done"), "{agent}");
    assert_eq!(
        node.story(&id),
        ["accepted 0", "in_progress 1", "accepted 1", "in_progress 2", "completed 2"]
    );
}

#[test]
fn saved_state_of_a_job_is_removed_after_its_last_attempt() {
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
fn node_that_is_asked_to_stop_ends_its_jobs_and_reports_them() {
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
fn node_whose_launcher_died_exits_for_a_restart_and_loses_nothing() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let running = node.submit(script("sleep 100"));
    node.wait_for(&running, "in_progress");
    // Its first child is the launcher, the parent of all others.
    let own = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let launcher = own(node.pid()).split_whitespace().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(launcher).unwrap(), Signal::KILL).unwrap();
    assert_eq!(node.ended(), Some(125));
    assert!(node.log().contains("no more sandboxes can be started"), "{}", node.log());
    node.killed_and_started();
    assert_eq!(node.wait_for(&running, "node_failure")["attempt"], 1);
    assert_eq!(node.run(&script("echo again")).json()["stdout"], "again\n");
}
