//! Counts the seccomp filters that programs install, and refuses more than a sandbox may have.
//!
//! The kernel compiles each filter into memory that is limited for the whole machine (`net.core.bpf_jit_limit`) and counted
//! for no user: two sandboxes could use it up, and then no other could start. The length of a filter lies in memory, where
//! the caller can change it after PID 1 has looked. So every filter counts as one of the longest.
//!
//! Installed filters are added up. A filter is gone when no thread has it any more, but the kernel reports no such event.
//! So when there are too many, PID 1 computes an upper bound: the kernel reports the number of filters of each thread.
//! Threads that share filters can't be distinguished from threads that don't, except where a process has always given all
//! its threads the same ones.
//!
//! A look counts only if it can't have missed a thread (`look`). Where none does, all filters count as if they were still
//! there, and the next one is refused.

use super::sandbox_state::OwnResources;
use crate::kernel::{
    self,
    ask::{self, SeccompNotification},
};
use crate::listing::numbers_in;
use crate::seccomp::policy::guard::SECCOMP_SET_MODE_FILTER;
use crate::wall;
use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// The filters of one sandbox.
pub(super) struct Filters {
    /// Maximum number of filters that programs may have installed at a time.
    most: u64,
    /// Number of filters of a program that has installed none: those of PID 1, the guard, and those that the runner gives
    /// it. Read when it is first needed.
    given: Option<u64>,
    /// Upper bound of the filters that are installed now.
    installed: u64,
    /// The runner, if there is one. It is never refused a filter: without one, its steps could harm it.
    runner: Option<i32>,
    /// Expected number of filters of each thread whose call was let through and may not have taken effect yet.
    expected: HashMap<i32, u64>,
    /// Processes whose threads may have different filters.
    divided: HashSet<i32>,
    /// Earliest time of the next look.
    next_look: Option<Instant>,
}

/// State of a thread, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    process: i32,
    threads: u64,
    filters: u64,
}

/// Minimum time between two looks at every thread.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Number of filters that the runner gives each program that it starts.
const FILTERS_OF_RUNNER: u64 = 2;

/// Maximum time for repeating a look when processes began or ended meanwhile.
const LOOK_LIMIT: Duration = Duration::from_millis(50);

/// The threads of a sandbox by their ids, those of PID 1 left out.
type Threads = HashMap<i32, Thread>;

/// Answers one question.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification, own: &OwnResources) {
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
            next_look: None,
        }
    }

    /// Exempts the runner, and the filters that everything it starts has from it.
    pub(super) fn exempt(&mut self, runner: i32) {
        self.runner = Some(runner);
    }

    /// The runner, if there is one.
    pub(super) fn runner(&self) -> Option<i32> {
        self.runner
    }

    /// Counts one more for the thread that asks, if there may be one more.
    fn admit(&mut self, question: &SeccompNotification) -> Result<(), Errno> {
        // The number is the caller's as long as it waits; an answer to a caller that is gone has no effect.
        let thread = Thread::read(&format!("/proc/{}/status", question.thread))?.ok_or(Errno::SRCH)?;
        if self.runner == Some(thread.process) {
            return Ok(());
        }
        if asks_for_log(question) {
            return Err(Errno::INVAL);
        }
        if self.installed >= self.most {
            self.look_again();
        }
        if self.installed >= self.most {
            // Same error as the kernel's when a filter is too much for it.
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

    /// Adds up the filters that live threads may have, if that can be determined.
    fn look_again(&mut self) {
        let begun = Instant::now();
        if self.next_look.is_some_and(|next| begun < next) {
            return;
        }
        let found = look(begun + LOOK_LIMIT);
        // PID 1 has more to do than this, however many threads there are.
        self.next_look = Some(Instant::now() + BETWEEN_LOOKS.max(4 * begun.elapsed()));
        if let Some(threads) = found {
            self.take_stock(&threads);
        }
    }

    fn take_stock(&mut self, threads: &Threads) {
        let own = || Thread::read("/proc/self/status").ok().flatten().map_or(0, |own| own.filters);
        let of_runner = if self.runner.is_some() { FILTERS_OF_RUNNER } else { 0 };
        let given = *self.given.get_or_insert_with(|| own() + 1 + of_runner);
        // No more than were ever installed.
        self.installed = self.installed.min(self.add_up(threads, given));
        self.expected.retain(|thread, _| threads.contains_key(thread));
        let processes: HashSet<i32> = threads.values().map(|thread| thread.process).collect();
        self.divided.retain(|process| processes.contains(process));
    }

    fn add_up(&self, threads: &Threads, given: u64) -> u64 {
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

/// Returns true if the call asks the kernel to log what the filter refuses to the host's audit log. Such a call is answered
/// as by a kernel that doesn't know the flag. A filter that has allowed calls logged (`SECCOMP_RET_LOG`) can't be told from
/// others: it lies in memory that its caller can change.
fn asks_for_log(question: &SeccompNotification) -> bool {
    question.number == libc::SYS_seccomp as i32 && question.arguments[1] & libc::SECCOMP_FILTER_FLAG_LOG != 0
}

/// Returns every live thread; `None` if that can't be determined in time.
///
/// A list of `/proc` misses a process whose parent's parent was there a moment ago and has ended since. So a look counts only
/// if nothing has begun and nothing has ended meanwhile: two lists have the same threads in them, and the kernel, which
/// gives ids in a row, has given none in between. A thread that began before and was not in either list yet would be seen
/// by its parent, which waits for it.
fn look(until: Instant) -> Option<Threads> {
    let mut before = next_id()?;
    loop {
        let lists = [threads().ok()?, threads().ok()?];
        let after = next_id()?;
        if let Some(found) = agreed((before, after), lists) {
            return Some(found);
        }
        if Instant::now() >= until {
            return None;
        }
        before = after;
    }
}

/// The threads of both lists, if they are the same ones and no other can have been there in between.
fn agreed((before, after): (i32, i32), [first, mut second]: [Threads; 2]) -> Option<Threads> {
    let is_same = first.len() == second.len() && first.keys().all(|id| second.contains_key(id));
    if has_begun(Some(before), Some(after)) || !is_same {
        return None;
    }
    for (id, thread) in first {
        let found = second.entry(id).or_insert(thread);
        found.filters = found.filters.max(thread.filters);
    }
    Some(second)
}

/// Returns true if a process or thread may have begun between two ids that PID 1 was given: the kernel assigns ids in
/// sequence.
pub(super) fn has_begun(before: Option<i32>, after: Option<i32>) -> bool {
    before.zip(after).is_none_or(|(before, after)| after != before + 1)
}

/// The id that a process gets now. It ends at once, and is collected like every other child.
pub(super) fn next_id() -> Option<i32> {
    // SAFETY: PID 1 has a single thread.
    match unsafe { kernel::fork() } {
        Ok(Some(child)) => Some(child),
        Ok(None) => kernel::exit_now(0),
        Err(_) => None,
    }
}

/// Returns every thread of the sandbox except those of PID 1, as far as a list shows them.
///
/// # Errors
/// The kernel's for a thread that exists and can't be read: it may have any filters.
fn threads() -> Result<Threads, Errno> {
    let mut found = Threads::new();
    for process in ids("/proc")?.into_iter().filter(|process| *process != 1) {
        for thread in ids(&format!("/proc/{process}/task"))? {
            let status = Thread::read(&format!("/proc/{process}/task/{thread}/status"))?;
            found.extend(status.map(|status| (thread, status)));
        }
    }
    Ok(found)
}

/// Returns the numbers in a directory of `/proc`; none if the process is gone.
fn ids(path: &str) -> Result<Vec<i32>, Errno> {
    match numbers_in(path) {
        Err(errno) if is_gone(errno) => Ok(Vec::new()),
        listed => listed,
    }
}

fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH)
}

// === impl Thread ===

impl Thread {
    /// Reads a `status` file of `/proc`; `None` for a thread that is gone.
    ///
    /// # Errors
    /// The kernel's for a thread that exists and can't be read; [`Errno::NOSYS`] on a kernel that doesn't count filters
    /// (before Linux 5.9).
    fn read(path: &str) -> Result<Option<Self>, Errno> {
        let mut text = [0; 4096];
        let file = match openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(errno) if is_gone(errno) => return Ok(None),
            file => file?,
        };
        let read = match rustix::io::read(&file, &mut text) {
            Err(errno) if is_gone(errno) => return Ok(None),
            read => read?,
        };
        Self::parse(text.get(..read).unwrap_or_default()).ok_or(Errno::NOSYS).map(Some)
    }

    fn parse(status: &[u8]) -> Option<Self> {
        // The first line holds a name of the program's choosing: any bytes but line breaks.
        let field = |name: &str| {
            let lines = status.split(|byte| *byte == b'\n').skip(1);
            let value =
                lines.filter_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":")).next()?;
            std::str::from_utf8(value).ok().map(str::trim)
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
    fn thread_status_is_parsed_with_any_thread_name() {
        let rest = b"\nUmask:\t0022\nTgid:\t12\nThreads:\t4\nSeccomp_filters:\t7\n";
        for name in [&b"Name:\tcat"[..], b"Name:\tSeccomp_filters:", b"Name:\t\xff\xfe\x80"] {
            let read = Thread::parse(&[name, rest].concat());
            assert_eq!(read, Some(Thread { process: 12, threads: 4, filters: 7 }), "{name:?}");
        }
        assert_eq!(Thread::parse(b"Name:\tx\nTgid:\t12\nThreads:\t4\n"), None);
    }

    #[test]
    fn scan_counts_only_if_no_thread_started_or_ended_meanwhile() {
        let thread = |filters| Thread { process: 10, threads: 1, filters };
        let list = |threads: &[(i32, u64)]| -> Threads {
            threads.iter().map(|(id, filters)| (*id, thread(*filters))).collect()
        };
        let quiet = agreed((20, 21), [list(&[(10, 5), (11, 4)]), list(&[(10, 4), (11, 6)])]);
        assert_eq!(quiet, Some(list(&[(10, 5), (11, 6)])), "more than one list shows counts");
        assert_eq!(agreed((20, 22), [list(&[(10, 5)]), list(&[(10, 5)])]), None, "one began");
        assert!(!has_begun(Some(20), Some(21)) && has_begun(Some(20), Some(22)));
        assert!(
            has_begun(Some(20), None) && has_begun(None, Some(20)),
            "no id is known, so a start can't be ruled out"
        );
        assert_eq!(
            agreed((20, 21), [list(&[(10, 5)]), list(&[(11, 5)])]),
            None,
            "one took the other's place"
        );
        assert_eq!(agreed((20, 21), [list(&[(10, 5), (11, 1)]), list(&[(10, 5)])]), None, "one ended");
    }

    #[test]
    fn seccomp_filter_that_logs_denials_on_the_host_is_refused() {
        let question = |number: i64, flags| {
            let arguments = [SECCOMP_SET_MODE_FILTER.into(), flags, 0, 0, 0, 0];
            let thread = rustix::thread::gettid().as_raw_pid();
            SeccompNotification { id: 0, thread, number: number as i32, arguments }
        };
        let mut filters = Filters::new(8);
        let logged = libc::SECCOMP_FILTER_FLAG_LOG | libc::SECCOMP_FILTER_FLAG_TSYNC;
        assert_eq!(filters.admit(&question(libc::SYS_seccomp, logged)), Err(Errno::INVAL));
        assert_eq!(filters.installed, 0);
        // The controls: another flag, and a call whose second argument is none.
        let synchronized = libc::SECCOMP_FILTER_FLAG_TSYNC;
        assert_eq!(filters.admit(&question(libc::SYS_seccomp, synchronized)), Ok(()));
        assert_eq!(filters.admit(&question(libc::SYS_prctl, logged)), Ok(()));
    }

    #[test]
    fn vanished_thread_is_none_and_unreadable_thread_is_an_error() {
        assert_eq!(Thread::read("/proc/self/task/1/status").unwrap(), None);
        assert_eq!(Thread::read("/proc/self/status/").unwrap_err(), Errno::NOTDIR);
        assert!(Thread::read("/proc/self/status").unwrap().is_some());
        assert!(threads().unwrap().contains_key(&rustix::process::getpid().as_raw_pid()));
    }

    #[test]
    fn shared_filters_count_once_and_differing_filters_count_per_thread() {
        let thread = |process, filters| Thread { process, threads: 2, filters };
        let threads = [(10, thread(10, 5)), (11, thread(10, 5)), (12, thread(12, 3)), (13, thread(13, 4))];
        let threads = Threads::from(threads);
        let mut counted = Filters::new(8);
        assert_eq!(counted.add_up(&threads, 3), 3);
        counted.divided.insert(10);
        assert_eq!(counted.add_up(&threads, 3), 5);
        counted.expected.insert(12, 6);
        assert_eq!(counted.add_up(&threads, 3), 8, "what was let through counts before it is there");
    }
}
