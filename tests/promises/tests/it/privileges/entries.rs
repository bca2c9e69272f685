//! PK5: the entry points for programs of other architectures, which have other system call numbers.

use crate::case::{Case, InsideExpectation, OutsideExpectation, Script};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::{KernelEntry, SpecialAct};

/// Denied calls and harmless ones, by their numbers on 32-bit x86.
const I386: [(&str, u32); 14] = [
    ("getpid", 20),
    ("mount", 21),
    ("ptrace", 26),
    ("chroot", 61),
    ("reboot", 88),
    ("socketcall", 102),
    ("init_module", 128),
    ("pivot_root", 217),
    ("keyctl", 288),
    ("unshare", 310),
    ("perf_event_open", 336),
    ("open_by_handle_at", 342),
    ("setns", 346),
    ("bpf", 357),
];

/// Calls with 32-bit pointers (x32), by this architecture's numbers.
const X32: [(&str, u32); 10] = [
    ("getpid", 39),
    ("ptrace", 521),
    ("mount", 165),
    ("chroot", 161),
    ("unshare", 272),
    ("keyctl", 250),
    ("setns", 308),
    ("bpf", 321),
    ("execveat", 545),
    ("io_uring_setup", 425),
];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let case = |entry: KernelEntry, name: &str, number: u32| {
        // Invalid arguments: numbers that are no valid pointers, and no process.
        let call = SpecialAct::Foreign { entry, number, arguments: [u32::MAX, 1, 1] };
        Case::denied("PK5", format!("{entry:?} {name}"), Script::of(call))
            .inside(InsideExpectation::of_foreign_call(scene))
            .outside(OutsideExpectation::Survives)
    };
    let i386 = I386
        .map(|(name, number)| case(KernelEntry::I386, name, number).needs("the entry for 32-bit programs"));
    // A kernel without this entry point answers, too, with another errno: the control shows only that it answers.
    let x32 = X32.map(|(name, number)| case(KernelEntry::X32, name, number));
    i386.into_iter().chain(x32).collect()
}
