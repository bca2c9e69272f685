//! `belljar trust`, and a level that an agent earns while its server runs.

use crate::BELLJAR;
use crate::mcp::McpConversation;
use crate::session::SessionCleanup;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Two good tasks lead from the lowest level to the next, one more to the third, and a person's approval to the highest.
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

#[test]
fn level_is_earned_by_recorded_events_and_the_highest_by_an_operator() {
    let world = world();
    record(&world, &json!({ "type": "agent_hired" }));
    let mut levels = vec![level(&world)];
    for _ in 0..5 {
        good_task(&world);
        levels.push(level(&world));
    }
    assert_eq!(
        levels,
        ["sandboxed", "sandboxed", "restricted", "standard", "standard", "standard"],
        "{}",
        shown(&world)
    );
    let proposal = shown(&world)["state"]["pending"][0]["proposal_id"].as_str().unwrap().to_owned();
    // An approval of another proposal has no effect, and an approval can't be recorded as an event.
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
fn reading_trust_changes_neither_a_proposals_id_nor_a_level() {
    let world = world();
    record(&world, &json!({ "type": "agent_hired" }));
    (0..4).for_each(|_| good_task(&world));
    let pending = || shown(&world)["state"]["pending"].clone();
    let first = pending();
    assert_eq!((first.as_array().map(Vec::len), &pending()), (Some(1), &first));
    let id = first[0]["proposal_id"].as_str().unwrap();
    world.run(&["trust", "approve", "worker", id]).succeeded();
    assert_eq!(level(&world), "elevated");
}

#[test]
fn level_earned_and_lost_before_the_first_look_is_not_granted() {
    let world = world();
    let lapsing = format!("{MILESTONES}  re_verification: {{enabled: true, decay_on_idle_days: 30}}\n");
    world.write(".config/belljar/config.yaml", lapsing);
    let long_ago = |event: Value, at: &str| {
        world.run(&["trust", "record", "worker", &event.to_string(), "--at", at]).succeeded();
    };
    long_ago(json!({ "type": "agent_hired" }), "2026-01-01T00:00:00Z");
    for at in ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"] {
        long_ago(json!({ "type": "task_completed", "quality": 9.0 }), at);
    }
    let told = shown(&world);
    let steps: Vec<_> =
        told["changes"].as_array().unwrap().iter().map(|one| (&one["new"], &one["at"])).collect();
    assert_eq!(
        steps,
        [
            (&json!("restricted"), &json!("2026-01-03T00:00:00Z")),
            (&json!("sandboxed"), &json!("2026-02-02T00:00:00Z"))
        ]
    );
    assert_eq!(told["state"]["global_level"], "sandboxed");
}

#[test]
fn category_with_a_higher_level_keeps_its_tools_beside_a_lowest_one() {
    let world = World::new(BELLJAR);
    let configure = |file_system: &str| {
        let yaml = format!(
            "tool_access: {{agents: [{{name: worker, autonomy: full}}]}}
trust:
  strategy: per_category
  initial_levels: {{file_system: {file_system}, terminal: standard, deployment: sandboxed}}
  promotion_criteria: {{deployment: {{sandboxed_to_restricted: {{requires_human_approval: true}}}}}}
"
        );
        world.write(".config/belljar/config.yaml", yaml);
    };
    world.write("project/a.txt", "what is in the project");
    let call = |tool: &str, arguments: Value| {
        let arguments = arguments.to_string();
        world.run(&["tools", "call", tool, &arguments, "--agent", "worker", "--workspace", "project"])
    };
    configure("standard");
    let read = call("read_file", json!({ "path": "a.txt" })).succeeded().stdout;
    assert!(read.contains("what is in the project"), "{read}");
    let printed = call("shell_command", json!({ "command": "cat a.txt" })).succeeded().stdout;
    assert!(printed.contains("what is in the project"), "{printed}");
    let shown = world.run(&["policy", "show", "--agent", "worker", "--json"]).succeeded().json();
    assert_eq!(shown["sandbox"]["workspace"], "project", "{shown}");
    assert_eq!(shown["by_category"]["deployment"]["level"], "sandboxed", "{shown}");
    // The control: at the lowest level for files there are no files of the project, which is reported.
    configure("sandboxed");
    let refused = call("read_file", json!({ "path": "a.txt" }));
    assert!(refused.code != 0 && refused.stderr.contains("--workspace"), "{refused:?}");
}

#[test]
fn trust_event_counts_once_and_an_invalid_one_is_refused() {
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
    assert_eq!(world.run(&["trust", "show", "absent"]).code, 2);
}

#[test]
fn earned_and_lost_levels_apply_to_an_agent_that_is_being_served() {
    let world = world();
    let mut talk = McpConversation::begin(&world, &["--tools", "builtin", "--agent", "worker"]);
    let _ended = SessionCleanup(&world);
    let list = json!({ "command": "echo there" });
    // The configured level is no earned one.
    assert_eq!(talk.refused("shell_command", &list).0, "permission_denied");
    for _ in 0..3 {
        good_task(&world);
    }
    wait::until(|| level(&world) == "standard");
    wait::until(|| talk.call("shell_command", &list)["status"] == "ok");
    talk.done("write_file", &json!({ "path": "a.txt", "content": "a" }));
    world.run(&["trust", "set", "worker", "sandboxed", "--reason", "not by itself"]).succeeded();
    wait::until(|| talk.call("shell_command", &list)["status"] == "error");
    // Its remaining permissions apply in a new session with fewer rights, and the old session is left to a person.
    assert_eq!(talk.refused("read_file", &json!({ "path": "a.txt" })).0, "not_found");
    let sessions = world.run(&["session", "list", "--json"]).succeeded().json();
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    let shown = world.run(&["policy", "show", "--agent", "worker", "--json"]).succeeded().json();
    assert_eq!(shown["level"], "sandboxed", "{shown}");
}

#[test]
fn other_trust_rules_are_replayed_with_the_trust_at_the_time_of_the_call() {
    let world = world();
    let _sessions = SessionCleanup(&world);
    record(&world, &json!({ "type": "agent_hired" }));
    let list = || {
        world
            .run(&["tools", "call", "shell_command", r#"{"command": "ls"}"#, "--agent", "worker", "--json"])
            .code
    };
    assert_eq!(list(), 3);
    for _ in 0..3 {
        good_task(&world);
    }
    assert_eq!((level(&world), list()), (json!("standard"), 0));
    let check = |config: &str| {
        world.write("tried.yaml", config);
        world.run(&["policy", "check", "tried.yaml", "--json"]).json()
    };
    // By the current level the first call would be made.
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
