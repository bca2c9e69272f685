//! The processes that descend from one.

use std::fs;

/// Returns all descendants of a process at the moment, without itself.
pub fn descendants(pid: i32) -> Vec<i32> {
    let (mut found, mut pending) = (Vec::new(), vec![pid]);
    while let Some(pid) = pending.pop() {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            pending.extend(children.inspect(|child| found.push(*child)));
        }
    }
    found
}
