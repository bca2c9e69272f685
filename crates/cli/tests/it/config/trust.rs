//! The effects of members of `trust` on the level of an agent with recorded events.

use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A time before all intervals of these tests.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// An event of `worker`; true if it is long ago.
type WorkerEvent = (Value, bool);

fn now(event: Value) -> WorkerEvent {
    (event, false)
}

fn long_ago(event: Value) -> WorkerEvent {
    (event, true)
}

fn task(quality: f64) -> Value {
    json!({ "type": "task_completed", "quality": quality, "difficulty": 1.0 })
}

/// Returns the displayed trust state of the agent with that strategy and these events.
fn shown(trust: &str, events: &[WorkerEvent]) -> Value {
    let world = World::new(BELLJAR);
    let agents = "tool_access: {agents: [{name: worker, autonomy: full}]}";
    world.write(".config/belljar/config.yaml", format!("{agents}\ntrust: {{{trust}}}\n"));
    for (event, is_long_ago) in events {
        let event = event.to_string();
        let at: &[&str] = if *is_long_ago { &["--at", LONG_AGO] } else { &[] };
        world.run(&[&["trust", "record", "worker", &event], at].concat()).succeeded();
    }
    let mut shown = world.run(&["trust", "show", "worker", "--json"]).succeeded().json()["state"].clone();
    let policy = world.run(&["policy", "show", "--agent", "worker", "--json"]).succeeded().json();
    shown["by_category"] = policy["by_category"].clone();
    shown
}

fn level(shown: &Value) -> &str {
    shown["global_level"].as_str().unwrap_or_else(|| panic!("{shown}"))
}

/// Returns true if a promotion waits for a person.
fn is_proposed(shown: &Value) -> bool {
    shown["pending"].as_array().is_some_and(|pending| !pending.is_empty())
}

#[test]
fn each_trust_milestone_requires_its_configured_criteria() {
    for (step, from, to) in [
        ("sandboxed_to_restricted", "sandboxed", "restricted"),
        ("restricted_to_standard", "restricted", "standard"),
        ("standard_to_elevated", "standard", "elevated"),
    ] {
        let is_highest = to == "elevated";
        let person = if is_highest { ", requires_human_approval: true" } else { "" };
        let with = |members: &str, events: &[WorkerEvent]| {
            let milestones = format!("milestones: {{{step}: {{{members}{person}}}}}");
            shown(&format!("strategy: milestone, initial_level: {from}, {milestones}"), events)
        };
        let leads = |members: &str, events: &[WorkerEvent]| {
            let shown = with(members, events);
            level(&shown) == to || is_proposed(&shown)
        };
        let hired = json!({ "type": "agent_hired" });
        let tasks = [now(hired.clone()), now(task(9.0)), now(task(9.0))];
        assert!(leads("tasks_completed: 2", &tasks), "{step}");
        assert!(!leads("tasks_completed: 3", &tasks), "{step}");
        assert!(!leads("tasks_completed: 2, quality_score_min: 9.5", &tasks), "{step}");
        let slow = [long_ago(hired.clone()), long_ago(task(9.0)), now(task(9.0))];
        for days in ["time_active_days", "clean_history_days"] {
            let members = format!("tasks_completed: 2, {days}: 7");
            assert!(leads(&members, &slow), "{step} {days}");
            assert!(!leads(&members, &tasks), "{step} {days}");
        }
        let [began, first, last] = slow;
        let spoiled = [began, first, now(json!({ "type": "task_failed" })), last];
        assert!(!leads("tasks_completed: 2, clean_history_days: 7", &spoiled), "{step}");
        assert!(leads("tasks_completed: 2, time_active_days: 7", &spoiled), "{step}");
        if is_highest {
            continue;
        }
        for asks in ["auto_promote: false", "requires_human_approval: true"] {
            let shown = with(&format!("tasks_completed: 2, {asks}"), &tasks);
            assert_eq!((level(&shown), is_proposed(&shown)), (from, true), "{step} {asks}");
        }
        let taken = with("tasks_completed: 2, auto_promote: true", &tasks);
        assert_eq!((level(&taken), is_proposed(&taken)), (to, false), "{step}");
    }
    // The highest level always requires a person, whatever is configured.
    let world = World::new(BELLJAR);
    for members in ["requires_human_approval: false", "auto_promote: true", "tasks_completed: 2"] {
        let milestones = format!("milestones: {{standard_to_elevated: {{{members}}}}}");
        world.write("belljar.yaml", format!("trust: {{strategy: milestone, {milestones}}}\n"));
        assert_eq!(world.run(&["config", "check", "belljar.yaml"]).code, 2, "{members}");
    }
}

#[test]
fn trust_score_uses_its_weights_and_promotes_at_its_thresholds() {
    let weighted = |weights: [f64; 4], thresholds: &str, more: &str| {
        let [difficulty, completion, errors, feedback] = weights;
        let weights = format!(
            "{{task_difficulty: {difficulty}, completion_rate: {completion}, error_rate: {errors}, human_feedback: {feedback}}}"
        );
        let trust =
            format!("strategy: weighted, weights: {weights}, promotion_thresholds: {{{thresholds}}}{more}");
        let hired = now(json!({ "type": "agent_hired" }));
        shown(&trust, &[hired, now(task(9.0)), now(json!({ "type": "human_feedback", "score": 0.5 }))])
    };
    // One task counts as one of ten for difficulty and completion rate, and as one of twenty recent ones for the error rate.
    for (weights, score) in [
        ([1.0, 0.0, 0.0, 0.0], 0.1),
        ([0.0, 1.0, 0.0, 0.0], 0.1),
        ([0.0, 0.0, 1.0, 0.0], 0.05),
        ([0.0, 0.0, 0.0, 1.0], 0.5),
    ] {
        let shown = weighted(weights, "sandboxed_to_restricted: 0.9", "");
        assert_eq!(shown["score"].as_f64(), Some(score), "{weights:?}: {shown}");
    }
    let by_feedback = [0.0, 0.0, 0.0, 1.0];
    for (threshold, is_reached) in [(0.4, true), (0.6, false)] {
        let first = weighted(by_feedback, &format!("sandboxed_to_restricted: {threshold}"), "");
        assert_eq!(level(&first) == "restricted", is_reached, "{first}");
        let second = format!("sandboxed_to_restricted: 0.1, restricted_to_standard: {threshold}");
        let second = weighted(by_feedback, &second, ", initial_level: restricted");
        assert_eq!(level(&second) == "standard", is_reached, "{second}");
        let last = format!("standard_to_elevated: {{score: {threshold}, requires_human_approval: true}}");
        let last = weighted(by_feedback, &last, ", initial_level: standard");
        assert_eq!((level(&last), is_proposed(&last)), ("standard", is_reached), "{last}");
    }
}

#[test]
fn each_category_starts_and_is_promoted_as_configured() {
    let with = |initial: &str, tasks: u32| {
        let criteria = format!(
            "promotion_criteria: {{file_system: {{{initial}: {{tasks_completed: {tasks}, quality_score_min: 5}}}}}}"
        );
        let begins = initial.split("_to_").next().unwrap();
        let trust = format!("strategy: per_category, initial_levels: {{file_system: {begins}}}, {criteria}");
        let mut done = task(9.0);
        done["category"] = json!("file_system");
        shown(&trust, &[now(json!({ "type": "agent_hired" })), now(done)])["by_category"]["file_system"]["level"].clone()
    };
    assert_eq!(with("sandboxed_to_restricted", 2), "sandboxed");
    assert_eq!(with("sandboxed_to_restricted", 1), "restricted");
    assert_eq!(with("restricted_to_standard", 2), "restricted");
    assert_eq!(with("restricted_to_standard", 1), "standard");
}

#[test]
fn levels_are_lost_as_the_verification_section_says() {
    let step = "milestones: {standard_to_elevated: {quality_score_min: 7, requires_human_approval: true}}";
    let with = |verification: &str, events: &[WorkerEvent]| {
        let trust = format!(
            "strategy: milestone, initial_level: standard, {step}, re_verification: {{{verification}}}"
        );
        level(&shown(&trust, events)).to_owned()
    };
    let idle = [long_ago(json!({ "type": "agent_hired" })), long_ago(task(9.0))];
    let patient = "enabled: true, interval_days: 3650, decay_on_error_rate: 1";
    assert_eq!(with("decay_on_idle_days: 5", &idle), "standard", "it isn't enabled");
    assert_ne!(with(&format!("{patient}, decay_on_idle_days: 5"), &idle), "standard");
    assert_eq!(with(&format!("{patient}, decay_on_idle_days: 3650"), &idle), "standard");
    let hired = now(json!({ "type": "agent_hired" }));
    let failing =
        [hired, now(task(9.0)), now(json!({ "type": "task_failed" })), now(json!({ "type": "task_failed" }))];
    let often = "enabled: true, interval_days: 3650, decay_on_idle_days: 3650, decay_on_error_rate";
    assert_eq!(with(&format!("{often}: 0.15"), &failing), "restricted");
    assert_eq!(with(&format!("{often}: 0.5"), &failing), "standard");
    let poor = [long_ago(json!({ "type": "agent_hired" })), long_ago(task(1.0))];
    let looked_at = "enabled: true, decay_on_idle_days: 3650, decay_on_error_rate: 1, interval_days";
    assert_ne!(with(&format!("{looked_at}: 1"), &poor), "standard");
    assert_eq!(with(&format!("{looked_at}: 3650"), &poor), "standard");
}
