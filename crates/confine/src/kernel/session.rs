//! Who belongs to a session of processes, and their end.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;

/// Kills a session, and whoever descends from one of its processes. What has left the session and lost its parent is
/// not known to belong to it any more.
pub(crate) fn kill_session(leader: i32) {
    // Somebody may start others while the list is read: until there is nobody left, within reason.
    const ROUNDS: usize = 64;
    for _ in 0..ROUNDS {
        let members = members(leader);
        if members.is_empty() {
            return;
        }
        for pid in members {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn members(leader: i32) -> Vec<i32> {
    let processes: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let own = |process: &Process| process.pid == leader || process.session == leader;
    let mut members: HashSet<i32> = processes.iter().filter(|one| own(one)).map(|one| one.pid).collect();
    loop {
        let before = members.len();
        let children = processes.iter().filter(|one| members.contains(&one.parent)).map(|one| one.pid);
        let children: Vec<i32> = children.collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    let is_alive = |pid: &i32| processes.iter().any(|one| one.pid == *pid && one.is_alive);
    members.into_iter().filter(is_alive).collect()
}

struct Process {
    pid: i32,
    parent: i32,
    session: i32,
    is_alive: bool,
}

impl Process {
    /// From `/proc/<pid>/stat`; nothing if it is gone. The name stands in parentheses and may hold anything.
    fn read(pid: i32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        let mut fields = text.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some(Self { pid, parent, session, is_alive: !matches!(state, "Z" | "X") })
    }
}
