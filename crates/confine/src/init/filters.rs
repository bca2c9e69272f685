//! Counts the seccomp filters that programs install, and refuses more than a sandbox may have.
//!
//! The kernel compiles each filter into memory that is limited for the whole machine (`net.core.bpf_jit_limit`) and counted
//! for no user: two sandboxes could use it up, and then no other could start. The length of a filter lies in memory, where
//! the caller can change it after PID 1 has looked. So every filter counts as one of the longest.
//!
//! Installed filters are added up. A filter is gone when no thread has it any more, which nothing tells. So when there are
//! too many, PID 1 looks how many there can be: the kernel says of each thread how many it has. Threads that share
//! filters can't be told from threads that don't, except where a process has always given all its threads the same ones.

use super::own::Own;
use crate::kernel::ask::{self, Question};
use crate::seccomp::policy::guard::SECCOMP_SET_MODE_FILTER;
use crate::wall;
use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The filters of one sandbox.
pub(super) struct Filters {
    /// How many programs may have installed at a time.
    most: u64,
    /// How many a program has that has installed none: those of PID 1, the guard, and those that the runner gives it. Read
    /// when it is first needed.
    given: Option<u64>,
    /// How many there may be now, at most.
    installed: u64,
    /// The runner, if there is one. It is never refused a filter: without one, its steps could harm it.
    runner: Option<i32>,
    /// How many a thread will have that was let through, which may not have come to it yet.
    expected: HashMap<i32, u64>,
    /// Processes whose threads may have different filters.
    divided: HashSet<i32>,
    /// When it was looked last.
    looked: Option<Instant>,
}

/// What the kernel says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    process: i32,
    threads: u64,
    filters: u64,
}

/// How long PID 1 does something else after it has looked at every thread.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How many the runner gives each program that it starts.
const FILTERS_OF_RUNNER: u64 = 2;

/// A process that forks while it is looked at may be missed: the largest of so many looks counts.
const LOOKS: usize = 3;

/// Answers one question.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &Question, own: &Own) {
    let is_let = own.filters.borrow_mut().admit(question);
    match wall!(FilterLimit: is_let, else Ok(())) {
        Ok(()) => ask::let_through(listener, question.id),
        Err(errno) => ask::answer_question(listener, question.id, Err(errno)),
    }
}

// === impl Filters ===

impl Filters {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            given: None,
            installed: 0,
            runner: None,
            expected: HashMap::new(),
            divided: HashSet::new(),
            looked: None,
        }
    }

    /// Exempts the runner, and the filters that everything it starts has from it.
    pub(super) fn exempt(&mut self, runner: i32) {
        self.runner = Some(runner);
    }

    /// Counts one more for the thread that asks, if there may be one more.
    fn admit(&mut self, question: &Question) -> Result<(), Errno> {
        // The number is the caller's as long as it waits; an answer to a caller that is gone has no effect.
        let thread = Thread::read(&format!("/proc/{}/status", question.thread)).ok_or(Errno::SRCH)?;
        if self.runner == Some(thread.process) {
            return Ok(());
        }
        if self.installed >= self.most {
            self.look_again();
        }
        if self.installed >= self.most {
            // As the kernel says when a filter is too much for it.
            return Err(Errno::NOMEM);
        }
        let is_for_all = question.number == libc::SYS_seccomp as i32
            && question.arguments[0] as u32 == SECCOMP_SET_MODE_FILTER
            && question.arguments[1] & libc::SECCOMP_FILTER_FLAG_TSYNC != 0;
        // While its only thread waits for the answer, a process can't get another one.
        if thread.threads != 1 && !is_for_all {
            self.divided.insert(thread.process);
        }
        self.expected.insert(question.thread, thread.filters + 1);
        self.installed += 1;
        Ok(())
    }

    /// Adds up what the threads that live may have.
    fn look_again(&mut self) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < BETWEEN_LOOKS) {
            return;
        }
        let own = || Thread::read("/proc/self/status").map_or(0, |own| own.filters);
        let of_runner = if self.runner.is_some() { FILTERS_OF_RUNNER } else { 0 };
        let given = *self.given.get_or_insert_with(|| own() + 1 + of_runner);
        let looks = (0..LOOKS).map(|_| threads()).collect::<Vec<_>>();
        let found = looks.iter().map(|look| self.add_up(look, given)).max().unwrap_or(u64::MAX);
        // No more than were ever installed.
        self.installed = self.installed.min(found);
        let lives = |id: i32| looks.iter().flatten().any(|(thread, _)| *thread == id);
        self.expected.retain(|thread, _| lives(*thread));
        let runs = |id: i32| looks.iter().flatten().any(|(_, thread)| thread.process == id);
        self.divided.retain(|process| runs(*process));
        self.looked = Some(Instant::now());
    }

    fn add_up(&self, threads: &[(i32, Thread)], given: u64) -> u64 {
        let mut processes: HashMap<i32, u64> = HashMap::new();
        for (id, thread) in threads {
            let filters = thread.filters.max(self.expected.get(id).copied().unwrap_or_default());
            let own = filters.saturating_sub(given);
            let of_process = processes.entry(thread.process).or_default();
            *of_process = match self.divided.contains(&thread.process) {
                true => of_process.saturating_add(own),
                false => own.max(*of_process),
            };
        }
        processes.values().fold(0, |sum, of_process| sum.saturating_add(*of_process))
    }
}

/// Every thread of the sandbox but PID 1, by its id.
fn threads() -> Vec<(i32, Thread)> {
    let ids = |path: &str| -> Vec<i32> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let mut found = Vec::new();
    for process in ids("/proc").into_iter().filter(|process| *process != 1) {
        for thread in ids(&format!("/proc/{process}/task")) {
            let status = Thread::read(&format!("/proc/{process}/task/{thread}/status"));
            found.extend(status.map(|status| (thread, status)));
        }
    }
    found
}

// === impl Thread ===

impl Thread {
    /// Reads a `status` file of `/proc`; nothing for a thread that is gone, or on a kernel that doesn't count filters
    /// (before Linux 5.9).
    fn read(path: &str) -> Option<Self> {
        let mut text = [0; 4096];
        let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let read = rustix::io::read(&file, &mut text).ok()?;
        Self::parse(std::str::from_utf8(text.get(..read)?).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        // The first line holds a name of the program's choosing, which has no line breaks in it.
        let field = |name: &str| {
            let value = status.lines().skip(1).find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim)
        };
        Some(Self {
            process: field("Tgid")?.parse().ok()?,
            threads: field("Threads")?.parse().ok()?,
            filters: field("Seccomp_filters")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_thread_is_read() {
        let status = "Name:\tSeccomp_filters:\nUmask:\t0022\nTgid:\t12\nThreads:\t4\nSeccomp_filters:\t7\n";
        assert_eq!(Thread::parse(status), Some(Thread { process: 12, threads: 4, filters: 7 }));
        assert_eq!(Thread::parse("Name:\tx\nTgid:\t12\nThreads:\t4\n"), None);
    }

    #[test]
    fn threads_count_once_where_all_have_the_same_filters_and_each_where_they_may_differ() {
        let thread = |process, filters| Thread { process, threads: 2, filters };
        let threads = [(10, thread(10, 5)), (11, thread(10, 5)), (12, thread(12, 3)), (13, thread(13, 4))];
        let mut counted = Filters::new(8);
        assert_eq!(counted.add_up(&threads, 3), 3);
        counted.divided.insert(10);
        assert_eq!(counted.add_up(&threads, 3), 5);
        counted.expected.insert(12, 6);
        assert_eq!(counted.add_up(&threads, 3), 8, "what was let through counts before it is there");
    }
}
