//! Which processes there are, as `/proc` shows them to PID 1.

use super::{check, usage_of_children};
use crate::execution::SandboxLoad;
use crate::listing::numbers_in;
use crate::thread_state::ThreadState;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::time::Duration;

/// Returns the processes that run now besides this one, and what they use.
pub(crate) fn load() -> SandboxLoad {
    let own = rustix::process::getpid().as_raw_pid();
    let mut load = SandboxLoad { cpu: usage_of_children().cpu, ..SandboxLoad::default() };
    for process in all().into_iter().filter(|process| process.pid != own && process.is_alive) {
        load.processes += 1;
        load.threads += process.threads;
        load.resident_bytes += process.resident_pages * rustix::param::page_size() as u64;
        load.cpu += process.cpu;
    }
    load
}

/// Bytes of memory that all other processes hold: their pages, resident and swapped out, and the tables of these pages. A
/// shared page counts for each of them.
pub(crate) fn held_bytes() -> u64 {
    let own = rustix::process::getpid().as_raw_pid();
    numbers().filter(|pid| *pid != own).map(held_by).sum()
}

/// Reads the resident memory from `/proc/<pid>/status`; 0 if the process is gone.
fn held_by(pid: i32) -> u64 {
    let of = |path: &str| held_in(&std::fs::read(path).unwrap_or_default());
    let of_others = || of_another_thread(pid, |thread| of(&format!("{thread}/status")));
    of(&format!("/proc/{pid}/status")).or_else(of_others).unwrap_or_default()
}

/// Returns what `read` finds for a thread that lives, in a process whose first thread has ended and has no memory any more: all
/// others share it. `read` gets the path of a thread.
fn of_another_thread<T>(pid: i32, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    // Threads that are listed may have ended before they are read, where others begin without pause.
    const ROUNDS: usize = 32;
    for _ in 0..ROUNDS {
        let mut threads = numbers_in(&format!("/proc/{pid}/task")).unwrap_or_default();
        threads.retain(|thread| *thread != pid);
        if threads.is_empty() {
            break;
        }
        let found = threads.into_iter().find_map(|thread| read(&format!("/proc/{pid}/task/{thread}")));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns `None` for a thread without memory.
fn held_in(status: &[u8]) -> Option<u64> {
    const COUNTED: [&str; 3] = ["VmRSS", "VmPTE", "VmSwap"];
    // The name of a program may hold any bytes but no line break.
    let text = String::from_utf8_lossy(status);
    let kib = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        COUNTED.contains(&name).then(|| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())?
    });
    kib.fold(None, |sum, kib| Some(sum.unwrap_or_default() + (kib << 10)))
}

/// Kills a session, and all descendants of its processes. A process that has left the session and lost its parent isn't
/// known to belong to it any more. All are stopped first, so that none sees another die, or starts more than are found.
/// They are signalled by number: in a PID namespace of its own, any process that takes over a number is in the namespace,
/// too.
pub(crate) fn kill_session(leader: i32) {
    // A process may start others while the list is read: repeated until none is left, up to this many times.
    const ROUNDS: usize = 64;
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS {
        let members = members(leader);
        if members.is_empty() {
            return;
        }
        let (known, new): (Vec<i32>, Vec<i32>) = members.into_iter().partition(|pid| stopped.contains(pid));
        match new.is_empty() {
            true => signal_each(&known, Signal::KILL),
            false => signal_each(&new, Signal::STOP),
        }
        stopped.extend(new);
    }
    signal_each(&members(leader), Signal::KILL);
}

fn signal_each(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, signal);
    }
}

fn members(leader: i32) -> Vec<i32> {
    let processes = all();
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

pub(crate) fn all() -> Vec<Process> {
    numbers().filter_map(Process::read).collect()
}

fn numbers() -> impl Iterator<Item = i32> {
    numbers_in("/proc").unwrap_or_default().into_iter()
}

/// A process at one moment.
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    is_alive: bool,
    pub(crate) cpu: Duration,
    pub(crate) threads: u64,
    pub(crate) resident_pages: u64,
}

impl Process {
    /// Reads `/proc/<pid>/stat`; `None` if the process is gone.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let mut process = Self::read_from(pid, &format!("/proc/{pid}/stat"))?;
        // Its first thread has ended, and others live on: those hold the memory, which the first doesn't report.
        if process.is_alive && process.resident_pages == 0 {
            process.resident_pages = resident_pages_of_threads(pid);
        }
        Some(process)
    }

    /// The name stands in parentheses and may hold anything.
    fn read_from(pid: i32, path: &str) -> Option<Self> {
        let stat = std::fs::read(path).ok()?;
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        // The third field of the file, as its manual counts them, is the first here.
        let fields: Vec<&str> = text.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |at: usize| field(at)?.parse::<u64>().ok();
        let ticks = number(14)? + number(15)?;
        let threads = number(20)?;
        Some(Self {
            pid,
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            // The state is only that of its first thread.
            is_alive: !matches!(field(3)?, "Z" | "X") || threads > 1,
            cpu: Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)),
            threads,
            resident_pages: number(24)?,
        })
    }
}

/// Returns true if all threads of a process are stopped or have ended. A process that can't be looked at has ended.
pub(crate) fn stands_still(pid: i32) -> bool {
    let threads = numbers_in(&format!("/proc/{pid}/task")).unwrap_or_default().into_iter();
    let is_still = |stat: Vec<u8>| ThreadState::of(&stat).is_some_and(|state| !state.runs());
    threads.filter_map(|thread| std::fs::read(format!("/proc/{pid}/task/{thread}/stat")).ok()).all(is_still)
}

/// Returns the resident pages that the threads of a process share: any live thread reports them.
fn resident_pages_of_threads(pid: i32) -> u64 {
    let pages = |thread: &str| {
        let thread = Process::read_from(pid, &format!("{thread}/stat"))?;
        Some(thread.resident_pages).filter(|pages| *pages > 0)
    };
    of_another_thread(pid, pages).unwrap_or_default()
}

/// Returns true if two threads share one table of descriptors.
pub(crate) fn share_descriptors(one: i32, other: i32) -> Result<bool, Errno> {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) };
    check(order).map(|order| order == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_tables_and_swapped_pages_count_as_memory_of_a_process() {
        let status =
            b"Name:\tVmRSS\\n\xff\nVmSize:\t900 kB\nVmRSS:\t     700 kB\nVmPTE:\t  410 kB\nVmSwap:\t 5 kB\n";
        assert_eq!(held_in(status), Some(1115 << 10));
        assert_eq!(held_in(b"Name:\tended\nState:\tZ (zombie)\n"), None);
        assert!(held_by(rustix::process::getpid().as_raw_pid()) > 0);
        assert_eq!(held_by(i32::MAX), 0);
    }
}
