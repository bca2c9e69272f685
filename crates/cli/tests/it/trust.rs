//! `belljar trust`, and what an agent has earned, while it is served.

use crate::BELLJAR;
use crate::mcp::Talk;
use crate::session::Sessions;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Two good tasks lead from the lowest level to the next, one more from there, and a person to the highest.
const MILESTONES: &str = "
tool_access: {agents: [{name: worker, level: elevated, autonomy: full}]}
trust:
  strategy: milestone
  initial_level: sandboxed
  milestones:
    sandboxed_to_restricted: {tasks_completed: 2, quality_score_min: 7.0}
    restricted_to_standard: {tasks_completed: 3, quality_score_min: 7.0}
    standard_to_elevated: {tasks_completed: 4, quality_score_min: 7.0, requires_human_approval: true}
";

fn world() -> World {
    let world = World::new(BELLJAR);
    world.write(".config/belljar/config.yaml", MILESTONES);
    world
}

fn record(world: &World, event: &Value) {
    world.run(&["trust", "record", "worker", &event.to_string()]).succeeded();
}

fn good_task(world: &World) {
    record(world, &json!({ "type": "task_completed", "quality": 9.0 }));
}

fn shown(world: &World) -> Value {
    world.run(&["trust", "show", "worker", "--json"]).succeeded().json()
}

fn level(world: &World) -> Value {
    shown(world)["state"]["global_level"].clone()
}

/// Has somebody look at what was earned.
fn look(world: &World) {
    record(world, &json!({ "type": "evaluated" }));
}

#[test]
fn a_level_is_earned_by_what_is_recorded_and_the_highest_by_a_persons_word() {
    let world = world();
    record(&world, &json!({ "type": "agent_hired" }));
    let mut levels = vec![level(&world)];
    for _ in 0..5 {
        good_task(&world);
        look(&world);
        levels.push(level(&world));
    }
    assert_eq!(
        levels,
        ["sandboxed", "sandboxed", "restricted", "standard", "standard", "standard"],
        "{}",
        shown(&world)
    );
    let proposal = shown(&world)["state"]["pending"][0]["proposal_id"].as_str().unwrap().to_owned();
    // Another proposal's yes is none, and one doesn't record a yes.
    let wrong = world.run(&["trust", "approve", "worker", "01234567"]);
    assert_eq!((wrong.code, level(&world)), (2, json!("standard")), "{wrong:?}");
    let yes = json!({
        "type": "promotion_approved", "approval_id": proposal, "proposal_id": proposal, "transition": "standard_to_elevated"
    });
    assert_eq!(world.run(&["trust", "record", "worker", &yes.to_string()]).code, 2);
    world.run(&["trust", "approve", "worker", &proposal]).succeeded();
    let told = shown(&world);
    assert_eq!(told["state"]["global_level"], "elevated", "{told}");
    assert_eq!(told["changes"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!(told["changes"][2]["reason"], "human_approval");
    let listed = world.run(&["trust", "list"]).succeeded().stdout;
    assert!(listed.contains("worker") && listed.contains("elevated"), "{listed}");
}

#[test]
fn an_event_counts_once_and_what_is_none_is_refused() {
    let world = world();
    record(&world, &json!({ "type": "agent_hired" }));
    let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
    let task = json!({ "type": "task_completed", "quality": 9.0 }).to_string();
    let at = "2026-11-25T00:00:00Z";
    let first = world.run(&["trust", "record", "worker", &task, "--id", id, "--at", at]);
    let again = world.run(&["trust", "record", "worker", &task, "--id", id, "--at", at]);
    assert!(again.stderr.contains("already"), "{first:?} {again:?}");
    for wrong in ["{}", "[", "{\"type\": \"task_done\"}", "{\"type\": \"human_feedback\", \"score\": 2}"] {
        let ran = world.run(&["trust", "record", "worker", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:?}");
    }
    assert_eq!(world.run(&["trust", "show", "nobody"]).code, 2);
}

#[test]
fn what_is_earned_and_lost_counts_for_whoever_is_being_served() {
    let world = world();
    let mut talk = Talk::begin(&world, &["--tools", "builtin", "--agent", "worker"]);
    let _ended = Sessions(&world);
    let list = json!({ "command": "echo there" });
    // The configured level is none that was earned.
    assert_eq!(talk.refused("shell_command", &list).0, "permission_denied");
    for _ in 0..3 {
        good_task(&world);
    }
    wait::until(|| level(&world) == "standard");
    wait::until(|| talk.call("shell_command", &list)["status"] == "ok");
    talk.done("write_file", &json!({ "path": "a.txt", "content": "a" }));
    world.run(&["trust", "set", "worker", "sandboxed", "--reason", "not by itself"]).succeeded();
    wait::until(|| talk.call("shell_command", &list)["status"] == "error");
    // What it may still do is done where there is less, and what it had is a person's now.
    assert_eq!(talk.refused("read_file", &json!({ "path": "a.txt" })).0, "not_found");
    let sessions = world.run(&["session", "list", "--json"]).succeeded().json();
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    let shown = world.run(&["policy", "show", "--agent", "worker", "--json"]).succeeded().json();
    assert_eq!(shown["level"], "sandboxed", "{shown}");
}

#[test]
fn other_rules_are_tried_by_what_an_agent_had_earned_when_it_called() {
    let world = world();
    let _sessions = Sessions(&world);
    record(&world, &json!({ "type": "agent_hired" }));
    let list = || {
        world
            .run(&["tools", "call", "shell_command", r#"{"command": "ls"}"#, "--agent", "worker", "--json"])
            .code
    };
    assert_eq!(list(), 3);
    for _ in 0..3 {
        good_task(&world);
        look(&world);
    }
    assert_eq!((level(&world), list()), (json!("standard"), 0));
    let check = |config: &str| {
        world.write("tried.yaml", config);
        world.run(&["policy", "check", "tried.yaml", "--json"]).json()
    };
    // By today's level the first call would be done.
    assert_eq!(check(MILESTONES), json!({ "calls": 2, "changes": [] }));
    for wider in [
        MILESTONES.replace("initial_level: sandboxed", "initial_level: standard"),
        MILESTONES.split("trust:").next().unwrap().to_owned(),
    ] {
        let change = &check(&wider)["changes"][0];
        assert_eq!((&change["was"], &change["would_be"]), (&json!("deny"), &json!("allow")), "{wider}");
    }
    let slower = MILESTONES.replace("tasks_completed: 3", "tasks_completed: 30");
    let change = &check(&slower)["changes"][0];
    assert_eq!((&change["was"], &change["would_be"]), (&json!("allow"), &json!("deny")));
}
