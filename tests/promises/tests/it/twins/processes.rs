//! The program's own processes and threads.

use crate::case::{Case, HERE, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::{Argument, ForkMethod, SpecialAct};
use libc::{ECHILD, EINVAL, ENOENT, EPERM};

pub(crate) fn cases(_: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = [ForkMethod::Fork, ForkMethod::Vfork, ForkMethod::Clone, ForkMethod::Newest]
        .map(|by| Case::twin(&format!("a process by {by:?}"), |s| s.act(SpecialAct::Fork { by, flags: 0 })))
        .into();
    let waiting = |s: &mut Script| {
        s.call_or("wait4", args![-1, 0, libc::WNOHANG, 0], &[ECHILD]);
        s.call_or("waitid", args![0, 0, room(128), libc::WEXITED | libc::WNOHANG, 0], &[ECHILD]);
    };
    cases.extend([
        Case::twin("threads", |s| s.act(SpecialAct::Threads { count: 8 })),
        Case::twin("a debugger of one's own child", |s| s.act(SpecialAct::Trace)),
        Case::twin("waiting without children", waiting),
        Case::twin("user and group ids", identity),
        Case::twin("being oneself again", oneself),
        Case::twin("what a thread keeps", thread),
        Case::twin("locks between threads", futexes),
        Case::twin("newer locks between threads", newer_futexes).needs("those calls"),
        Case::twin("scheduling", scheduling),
        Case::twin("limits", limits),
        Case::twin("a process by descriptor", descriptors),
        Case::twin("personalities", |s| {
            for persona in [u64::from(u32::MAX), 0x0002_0000, 0x0004_0000, 0] {
                s.call("personality", args![persona]);
            }
        }),
        Case::twin("not sharing with threads", |s| {
            s.call("unshare", args![libc::CLONE_FS | libc::CLONE_FILES]);
        }),
        Case::twin("a filter of one's own", filter),
        Case::twin("a Landlock domain of one's own", |s| landlock(s, place)).needs("Landlock"),
        Case::twin("a program that isn't there", |s| {
            s.call_or("execve", args!["/not/there", 0, 0], &[ENOENT]);
            s.call_or("execveat", args![HERE, "/not/there", 0, 0, 0], &[ENOENT]);
        }),
    ]);
    cases
}

fn identity(s: &mut Script) {
    for name in ["getpid", "getppid", "gettid", "getpgrp", "getuid", "geteuid", "getgid", "getegid"] {
        s.call(name, args![]);
    }
    s.call("getpgid", args![0]);
    s.call("getsid", args![0]);
    s.call("setpgid", args![0, 0]);
    s.call_or("setsid", args![], &[EPERM]);
    s.call("getresuid", args![room(4), room(4), room(4)]);
    s.call("getresgid", args![room(4), room(4), room(4)]);
    s.call("getgroups", args![64, room(256)]);
    s.call("getcpu", args![room(4), room(4), 0]);
    s.call("getrusage", args![libc::RUSAGE_SELF, room(144)]);
    s.call("uname", args![room(390)]);
    s.call("sysinfo", args![room(112)]);
    s.call("getrandom", args![room(16), 16, 0]);
    s.call("capget", args![numbers(&[0x2008_0522, 0]), room(24)]);
    s.call_or("lsm_list_modules", args![room(64), words(args![64]), 0], &[libc::ENOSYS]);
    s.call_or(
        "lsm_get_self_attr",
        args![100, room(64), words(args![64]), 0],
        &[libc::ENOSYS, libc::EOPNOTSUPP, libc::E2BIG, EINVAL],
    );
}

/// Makes the calls of programs that drop privileges, whether they have any or not.
fn oneself(s: &mut Script) {
    let (user, group) = (s.call("getuid", args![]), s.call("getgid", args![]));
    // In a sandbox's namespace not even root may do this.
    s.call_or("setgroups", args![1, numbers(&[0])], &[EPERM, EINVAL]);
    s.call("setgid", args![group]);
    s.call("setregid", args![-1, group]);
    s.call("setresgid", args![group, group, group]);
    s.call("setfsgid", args![group]);
    s.call("setuid", args![user]);
    s.call("setreuid", args![-1, user]);
    s.call("setresuid", args![user, user, user]);
    s.call("setfsuid", args![user]);
    s.call("capset", args![numbers(&[0x2008_0522, 0]), numbers(&[0; 6])]);
}

fn thread(s: &mut Script) {
    s.call("prctl", args![libc::PR_SET_NAME, "named", 0, 0, 0]);
    s.call("prctl", args![libc::PR_GET_DUMPABLE, 0, 0, 0, 0]);
    s.call("arch_prctl", args![0x1003, room(8)]);
    s.call("set_tid_address", args![room(8)]);
    s.call("set_robust_list", args![room(24), 24]);
    s.call("get_robust_list", args![0, room(8), room(8)]);
    // The C library has already registered one.
    s.call_or("rseq", args![room(64), 32, 0, 0], &[EINVAL, libc::EBUSY, EPERM]);
}

fn futexes(s: &mut Script) {
    s.call("futex", args![numbers(&[0]), libc::FUTEX_WAKE, 1, 0, 0, 0]);
    s.call_or("futex_waitv", args![room(24), 0, 0, 0, 0], &[EINVAL]);
}

fn newer_futexes(s: &mut Script) {
    const U32: u64 = 2;
    let everybody = u64::from(u32::MAX);
    s.call("futex_wake", args![numbers(&[0]), everybody, 1, U32]);
    s.call_or("futex_wait", args![numbers(&[0]), 1, everybody, U32, 0, 0], &[libc::EAGAIN]);
    // Two of struct futex_waitv: value, address, flags
    let pair = words(vec![0.into(), numbers(&[0, 0]), U32.into(), 0.into(), numbers(&[0, 0]), U32.into()]);
    s.call("futex_requeue", args![pair, 0, 0, 0]);
}

fn scheduling(s: &mut Script) {
    s.call("sched_yield", args![]);
    let mask = s.call("sched_getaffinity", args![0, 128, room(128)]);
    s.call("sched_setaffinity", args![0, 128, mask.memory(2)]);
    s.call("sched_getscheduler", args![0]);
    s.call("sched_setscheduler", args![0, libc::SCHED_OTHER, numbers(&[0])]);
    s.call("sched_getparam", args![0, room(4)]);
    s.call("sched_setparam", args![0, numbers(&[0])]);
    let attributes = s.call("sched_getattr", args![0, room(56), 56, 0]);
    s.call("sched_setattr", args![0, attributes.memory(1), 0]);
    s.call("sched_get_priority_max", args![libc::SCHED_FIFO]);
    s.call("sched_get_priority_min", args![libc::SCHED_FIFO]);
    s.call("sched_rr_get_interval", args![0, room(16)]);
    s.call("getpriority", args![libc::PRIO_PROCESS, 0]);
    s.call("setpriority", args![libc::PRIO_PROCESS, 0, 1]);
    s.call("setpriority", args![libc::PRIO_PGRP, 0, 2]);
    s.call("ioprio_get", args![1, 0]);
    s.call("ioprio_set", args![1, 0, (2 << 13) | 7]);
}

fn limits(s: &mut Script) {
    let limit = s.call("getrlimit", args![libc::RLIMIT_NOFILE, room(16)]);
    s.call("setrlimit", args![libc::RLIMIT_NOFILE, limit.memory(1)]);
    s.call("prlimit64", args![0, libc::RLIMIT_STACK, 0, room(16)]);
    s.call("setrlimit", args![libc::RLIMIT_CORE, words(args![0, 0])]);
}

fn descriptors(s: &mut Script) {
    let own = s.call("getpid", args![]);
    let own = s.call("pidfd_open", args![own, 0]);
    s.call("pidfd_send_signal", args![own, 0, 0, 0]);
}

fn filter(s: &mut Script) {
    let allow_all = Argument::Bytes(vec![6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
    s.call("prctl", args![libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0]);
    s.call("seccomp", args![libc::SECCOMP_GET_ACTION_AVAIL, 0, numbers(&[0x7fff_0000])]);
    s.call("seccomp", args![libc::SECCOMP_SET_MODE_FILTER, 0, words(vec![1.into(), allow_all])]);
    s.call("getpid", args![]);
}

fn landlock(s: &mut Script, place: &AttemptPlace) {
    const EXECUTE: u64 = 1;
    s.call("prctl", args![libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0]);
    let rules = s.call("landlock_create_ruleset", args![words(args![EXECUTE]), 8, 0]);
    let folder = s.call("openat", args![HERE, place.path("/tmp"), libc::O_PATH, 0]);
    // struct landlock_path_beneath_attr is packed: the access, and a descriptor, which is a low number.
    s.call("dup2", args![folder, 100]);
    s.call("landlock_add_rule", args![rules, 1, words(args![EXECUTE, 100]), 0]);
    s.call("landlock_restrict_self", args![rules, 0]);
    s.call("getpid", args![]);
}
