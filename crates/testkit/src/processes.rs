//! Processes of this machine, as the kernel reports them.

use std::fs;

/// All that a process has started, and those again.
pub fn below(pid: i32) -> Vec<i32> {
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

/// Returns the processes below `pid` that are in a sandbox: in other PID namespaces than it is itself.
pub fn sealed_below(pid: i32) -> Vec<i32> {
    let namespace = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = namespace(pid);
    below(pid).into_iter().filter(|pid| namespace(*pid).is_some_and(|found| Some(found) != own)).collect()
}
