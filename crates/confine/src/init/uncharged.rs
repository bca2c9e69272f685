//! Kernel memory that the kernel charges to no control group, and that has no limit of its own: what sockets hold
//! ([`super::sockets`]), locks on files, and the state of directories that are being read. PID 1 looks at what there is of it
//! in the sandbox.
//!
//! A look costs two short reads. Lists are read only where they can be long: those of sockets where there are many sockets,
//! and tables of descriptors where the kernel's own memory has grown. `/proc/locks` is never read: that delays locks
//! everywhere on the machine.

use super::descriptors::{DescriptorFindings, ScanScope};
use super::filters::{has_begun, next_id};
use super::look_schedule::{ScanPace, ScanStop};
use super::sandbox_state::OwnResources;
use super::sockets::SocketWatch;
use crate::plan::{MOST_FOR_DIRECTORIES, MOST_LOCKS};
use crate::wall;
use std::fs;
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// A look that takes long is made more rarely.
const MOST_OF_THE_TIME: u32 = 10;
/// Growth of kernel memory after which descriptors are looked at, in KiB: some forty thousand locks.
const GROWTH_KIB: u64 = 8 << 10;
/// Growth after which they are looked at immediately, however long the last look took, in KiB.
const FAST_GROWTH_KIB: u64 = 64 << 10;
/// However little that memory grows: what others give back meanwhile may hide what is taken.
const UNASKED: Duration = Duration::from_secs(30);
/// Number of further looks before a sandbox is ended only for what may have been missed.
const LOOKS_FOR_PROOF: usize = 16;
/// A look at descriptors that takes more processor time is not finished. It usually takes some microseconds for each.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Looks now and then.
pub(super) struct UnchargedMemoryWatch {
    sockets: SocketWatch,
    descriptors: DescriptorWatch,
}

/// Looks at what descriptors have the kernel keep.
struct DescriptorWatch {
    next: Instant,
    /// Kernel memory when descriptors were last looked at, in KiB. The first value is taken before the first program
    /// starts: a hundred thousand locks fit before the first look.
    kernel_kib: Option<u64>,
    /// Kernel memory when descriptors were last seen to hold little, in KiB.
    kernel_kib_before: Option<u64>,
    /// Earliest time of the next look, and the time at which one is made however little the memory has grown.
    next_look: Instant,
    next_unasked: Instant,
}

// === impl UnchargedMemoryWatch ===

impl UnchargedMemoryWatch {
    pub(super) fn watch() -> Self {
        Self { sockets: SocketWatch::watch(), descriptors: DescriptorWatch::watch() }
    }

    /// Maximum time before [`Self::is_too_much`] must be called again.
    pub(super) fn patience(&self) -> Duration {
        self.sockets.patience().min(self.descriptors.next.saturating_duration_since(Instant::now()))
    }

    /// Returns true if more is held than allowed. Looks only when a look is due. Other limits are checked in between: a
    /// program decides how long a look takes.
    pub(super) fn is_too_much(&mut self, own: &OwnResources, others: &mut dyn FnMut() -> bool) -> bool {
        let Self { sockets, descriptors } = self;
        // In a namespace of the host's, what others hold would be counted.
        if wall!(NetworkNamespace: sockets.hold_too_much(others), else false) {
            return true;
        }
        let mut others = || others() || wall!(NetworkNamespace: sockets.hold_too_much(others), else false);
        wall!(PidNamespace: descriptors.hold_too_much(own, &mut others), else false)
    }
}

// === impl DescriptorWatch ===

impl DescriptorWatch {
    fn watch() -> Self {
        let now = Instant::now();
        let kernel_kib = kib_of("SUnreclaim:", &read("/proc/meminfo"));
        Self {
            next: now + BETWEEN_LOOKS,
            kernel_kib,
            kernel_kib_before: kernel_kib,
            next_look: now,
            next_unasked: now + UNASKED,
        }
    }

    /// Returns true if the descriptors hold more than allowed, or another look found too much meanwhile. Looks only when a
    /// look is due.
    fn hold_too_much(&mut self, own: &OwnResources, others: &mut dyn FnMut() -> bool) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        self.next = now + BETWEEN_LOOKS;
        let memory = read("/proc/meminfo");
        let Some(kernel_kib) = kib_of("SUnreclaim:", &memory) else { return false };
        let last = self.kernel_kib.unwrap_or(kernel_kib).min(kernel_kib);
        let before = self.kernel_kib_before.unwrap_or(kernel_kib).min(kernel_kib);
        (self.kernel_kib, self.kernel_kib_before) = (Some(last), Some(before));
        let is_due = match kernel_kib - last {
            GROWTH_KIB..FAST_GROWTH_KIB => now >= self.next_look,
            FAST_GROWTH_KIB.. => true,
            _ => now >= self.next_unasked,
        };
        if !is_due {
            return false;
        }
        self.kernel_kib = Some(kernel_kib);
        let growth = KernelMemoryGrowth {
            kib: kernel_kib - before,
            machine_kib: kib_of("MemTotal:", &memory).unwrap_or(0),
        };
        let judgement = look(own, growth, others);
        self.next_look = Instant::now() + now.elapsed() * MOST_OF_THE_TIME;
        self.next_unasked = self.next_look + UNASKED;
        if judgement == Judgement::Little {
            self.kernel_kib_before = Some(kernel_kib);
        }
        judgement == Judgement::TooMuch
    }
}

/// Looks at descriptors, and at the names in directories if they alone make it too much.
fn look(own: &OwnResources, growth: KernelMemoryGrowth, others: &mut dyn FnMut() -> bool) -> Judgement {
    let mut look = |counts_names| {
        let runner = own.filters.borrow().runner();
        let scope = ScanScope { overlays: own.overlays(), runner, most_locks: MOST_LOCKS, counts_names };
        let mut pace = ScanPace::begin(LONGEST_LOOK, &mut *others);
        let held = look_while_none_begins(|| DescriptorFindings::look(&scope, &mut pace));
        match pace.stop() {
            Some(ScanStop::Other) => (Judgement::TooMuch, held),
            Some(ScanStop::TookTooLong) | None => (judge(&held, growth), held),
        }
    };
    let mut outcome = look(false);
    // A moment in which no process begins proves that there is little.
    for _ in 0..LOOKS_FOR_PROOF {
        if outcome.0 != Judgement::TooMuch || !outcome.1.is_little_but_for_unseen() {
            break;
        }
        outcome = look(false);
    }
    match outcome {
        (Judgement::TooMuch, held)
            if !held.is_unfinished && held.locks <= MOST_LOCKS && held.directories > MOST_FOR_DIRECTORIES =>
        {
            look(true).0
        }
        (judgement, _) => judgement,
    }
}

/// Looks, and notes whether something may have been missed: a process that begins meanwhile may take over the table of descriptors of one
/// that was not looked at yet (`CLONE_FILES`), with all the locks that belong to the table.
fn look_while_none_begins(look: impl FnOnce() -> DescriptorFindings) -> DescriptorFindings {
    let before = next_id();
    let mut held = look();
    held.has_unseen |= has_begun(before, next_id());
    held
}

// === impl DescriptorFindings ===

impl DescriptorFindings {
    /// Returns true if everything that was seen is within the limits.
    fn is_little_but_for_unseen(&self) -> bool {
        let is_little = self.locks <= MOST_LOCKS && self.directories <= MOST_FOR_DIRECTORIES;
        is_little && !self.is_unfinished && self.has_unseen
    }
}

/// Growth of the kernel's own memory since descriptors were seen to hold little.
#[derive(Debug, Clone, Copy)]
struct KernelMemoryGrowth {
    kib: u64,
    /// Total memory of the machine, in KiB.
    machine_kib: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// No more than may be.
    Little,
    /// It may be more than allowed.
    Unclear,
    TooMuch,
}

/// Estimates and what isn't seen count only if the kernel's memory has grown all the while: others may be the reason, but not
/// where a program doesn't hold so much open. What can't be seen counts when the machine is about to run out.
///
/// A descriptor takes long to look at where the list of locks on its file is long.
fn judge(held: &DescriptorFindings, growth: KernelMemoryGrowth) -> Judgement {
    const PART_OF_MACHINE: u64 = 8;
    let has_long_lists = held.is_unfinished && held.descriptors < MOST_LOCKS;
    if held.locks > MOST_LOCKS || has_long_lists {
        return Judgement::TooMuch;
    }
    let most_kib = match held {
        _ if held.directories > MOST_FOR_DIRECTORIES || held.is_unfinished => MOST_FOR_DIRECTORIES >> 10,
        _ if held.has_unseen => growth.machine_kib / PART_OF_MACHINE,
        _ => return Judgement::Little,
    };
    if growth.kib > most_kib { Judgement::TooMuch } else { Judgement::Unclear }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A number of `/proc/meminfo`, of the whole machine. `SUnreclaim:` is memory of the kernel that it can't give back.
fn kib_of(name: &str, text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_memory_growth_is_parsed() {
        let text = "MemTotal: 8000000 kB\nSUnreclaim:       120708 kB\n";
        assert_eq!(kib_of("SUnreclaim:", text), Some(120_708));
        assert_eq!(kib_of("MemTotal:", text), Some(8_000_000));
        assert_eq!(kib_of("SUnreclaim:", "MemFree: 1 kB\n"), None);
    }

    #[test]
    fn process_started_during_a_scan_makes_it_incomplete() {
        let begin = || std::process::Command::new("true").status().map(drop);
        let held = look_while_none_begins(|| {
            begin().unwrap();
            DescriptorFindings::default()
        });
        assert!(held.has_unseen);
        // The control: nothing begins. Other programs of the machine may, so more than one look.
        assert!((0..10_000).any(|_| !look_while_none_begins(DescriptorFindings::default).has_unseen));
    }

    #[test]
    fn descriptor_estimates_count_only_if_kernel_memory_grows() {
        let growth = |mebibytes: u64| KernelMemoryGrowth { kib: mebibytes << 10, machine_kib: 8 << 20 };
        let little =
            DescriptorFindings { locks: MOST_LOCKS, directories: 1 << 20, ..DescriptorFindings::default() };
        assert_eq!(judge(&little, growth(4096)), Judgement::Little);
        let locks = DescriptorFindings { locks: MOST_LOCKS + 1, ..DescriptorFindings::default() };
        assert_eq!(judge(&locks, growth(0)), Judgement::TooMuch);
        let large =
            DescriptorFindings { directories: MOST_FOR_DIRECTORIES + 1, ..DescriptorFindings::default() };
        assert_eq!(judge(&large, growth(256)), Judgement::Unclear);
        assert_eq!(judge(&large, growth(257)), Judgement::TooMuch);
        let many = DescriptorFindings {
            descriptors: MOST_LOCKS,
            is_unfinished: true,
            ..DescriptorFindings::default()
        };
        assert_eq!(judge(&many, growth(256)), Judgement::Unclear);
        assert_eq!(judge(&many, growth(257)), Judgement::TooMuch);
        let slow = DescriptorFindings {
            descriptors: MOST_LOCKS - 1,
            is_unfinished: true,
            ..DescriptorFindings::default()
        };
        assert_eq!(judge(&slow, growth(0)), Judgement::TooMuch);
        let unseen = DescriptorFindings { has_unseen: true, ..DescriptorFindings::default() };
        assert_eq!(judge(&unseen, growth(1024)), Judgement::Unclear);
        assert_eq!(judge(&unseen, growth(1025)), Judgement::TooMuch);
    }
}
