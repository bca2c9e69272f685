//! Memory of a node: when it is idle, and with many sessions open.

use crate::Programs;
use crate::rounds::{Goal, judge};
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::world::World;
use serde_json::json;

const SESSIONS: usize = 500;

pub(crate) fn memory(programs: &Programs) -> bool {
    println!("\n## memory: a node's own, and of all its processes, in MiB (PSS)");
    let world = World::new(programs.belljar());
    let config = world.write("config.yaml", format!("node: {{ sessions: {{ max: {SESSIONS} }} }}\n"));
    let node = Node::start(&world, &["--config", &config.display().to_string()]);
    let [idle, all_idle] = [own(node.pid()), all(node.pid())];
    for _ in 0..SESSIONS {
        let request = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
        assert_eq!(node.post("/v1/worker/sessions", &request).status, 201);
    }
    let [busy, all_busy] = [own(node.pid()), all(node.pid())];
    println!("\n| | the node | with all that it has started |\n| --- | --- | --- |");
    println!("| idle | {idle:.1} | {all_idle:.1} |\n| {SESSIONS} sessions | {busy:.1} | {all_busy:.1} |");
    judge("an idle node, MiB", idle, Goal::AtMost(50.0))
        & judge("with 500 sessions, MiB", busy, Goal::AtMost(150.0))
}

fn own(pid: u32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Returns the memory of a process with all its descendants.
fn all(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.flat_map(|task| {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    own(pid) + children.map(all).sum::<f64>()
}
