//! The processes that descend from one.

use belljar_confine::listing::numbers_in;
use std::fs;

/// Returns all descendants of a process at the moment, without itself.
pub fn descendants(pid: i32) -> Vec<i32> {
    let (mut found, mut pending) = (Vec::new(), vec![pid]);
    while let Some(pid) = pending.pop() {
        for thread in numbers_in(&format!("/proc/{pid}/task")).unwrap_or_default() {
            let children =
                fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            pending.extend(children.inspect(|child| found.push(*child)));
        }
    }
    found
}
