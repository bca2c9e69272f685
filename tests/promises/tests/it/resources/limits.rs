//! RS1 and RS4: limits of processes, descriptors and other resources.
//!
//! The attempts are bounded, so that a machine survives them without any limit: each stops a little above the limit.

use crate::case::{
    Case, ControlPlacement, InsideExpectation, OutsideExpectation, Script, args, numbers, room, words,
};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_promises::attempt::{ExhaustibleResource, SpecialAct};
use libc::{EACCES, EAGAIN, EINVAL, EMFILE, ENOMEM, EPERM};

/// A little more than a sandbox may have.
const PROCESSES: u32 = 1_100;
const DESCRIPTORS: u32 = 65_600;
const LOCKED_MEBIBYTES: u32 = 9;

/// Limits, and a value just above that of a sandbox: where the limit is higher, setting it requires no right.
const LIMITS: [(&str, u32, u64); 6] = [
    ("open files", libc::RLIMIT_NOFILE, 65_537),
    ("processes", libc::RLIMIT_NPROC, 1_025),
    ("locked memory", libc::RLIMIT_MEMLOCK, (8 << 20) + 1),
    ("core files", libc::RLIMIT_CORE, 2),
    ("real-time priority", libc::RLIMIT_RTPRIO, 1),
    ("niceness", libc::RLIMIT_NICE, 1),
];

/// Requirement that root may not meet either.
const HIGHER_LIMITS: &str = "higher limits, and without the right to raise them";

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let exhaust = |row: &'static str, what: ExhaustibleResource, most: u32| {
        let script = Script::of(SpecialAct::Exhaust { what, most });
        Case::denied(row, format!("{most} {what:?}"), script)
    };
    let mut cases = vec![
        exhaust("RS1", ExhaustibleResource::Processes, PROCESSES)
            .fails(&[EAGAIN])
            .only(&[StartMethod::Empty]),
        exhaust("RS1", ExhaustibleResource::Threads, PROCESSES).fails(&[EAGAIN]).only(&[StartMethod::Job]),
        exhaust("RS1", ExhaustibleResource::Orphans, 1_000)
            .inside(InsideExpectation::Harmless)
            .only(&[StartMethod::Session]),
        exhaust("RS4", ExhaustibleResource::Descriptors, DESCRIPTORS)
            .fails(&[EMFILE])
            .by(ControlPlacement::Root)
            .needs(HIGHER_LIMITS),
        exhaust("RS4", ExhaustibleResource::LockedMemory, LOCKED_MEBIBYTES)
            .fails(&[ENOMEM, EPERM, EAGAIN])
            .by(ControlPlacement::Root),
    ];
    for (what, limit, value) in LIMITS {
        for (call, arguments) in [
            ("setrlimit", args![limit, words(args![value, value])]),
            ("prlimit64", args![0, limit, words(args![value, value]), 0]),
        ] {
            let case = Case::call("RS4", &format!("raise {what}"), call, arguments);
            cases.push(case.by(ControlPlacement::Root).needs(HIGHER_LIMITS));
        }
    }
    cases.extend(priorities());
    cases.push(pipes());
    cases
}

fn priorities() -> Vec<Case> {
    const REAL_TIME: u64 = 1 << 13;
    let root = |what: &str, name: &str, arguments| {
        Case::call("RS4", what, name, arguments).by(ControlPlacement::Root)
    };
    // struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period
    let deadline = numbers(&[48, 6, 0, 0, 0, 0, 10_000_000, 0, 30_000_000, 0, 30_000_000, 0]);
    vec![
        root("real time", "sched_setscheduler", args![0, libc::SCHED_FIFO, numbers(&[1])]),
        root("real time", "sched_setattr", args![0, numbers(&[48, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]), 0]),
        root("a deadline", "sched_setattr", args![0, deadline, 0])
            .outside(OutsideExpectation::Reaches(&[libc::EBUSY, EINVAL, EPERM]))
            .needs("scheduling by deadlines"),
        root("less nice", "setpriority", args![libc::PRIO_PROCESS, 0, -5]).fails(&[EACCES, EPERM]),
        root("real-time reads", "ioprio_set", args![1, 0, REAL_TIME]),
    ]
}

/// Returns a case with a pipe that is larger than an ordinary user's maximum.
fn pipes() -> Case {
    let mut script = Script::one("pipe", args![room(8)]);
    let pipe = script.first();
    script.prepared();
    script.call("fcntl", args![pipe.stored(0, 0), libc::F_SETPIPE_SZ, 64 << 20]);
    Case::denied("RS4", "a pipe that holds 64 MiB", script).by(ControlPlacement::Root).needs(HIGHER_LIMITS)
}
