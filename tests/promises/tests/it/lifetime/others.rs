//! LF2: affecting a process of the host by its number, with every call that takes one.

use crate::case::{BAD, Case, ControlPlacement, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EPERM, ESRCH, PRIO_PROCESS, SIGURG};

/// Errnos for a process that doesn't exist, or for the call itself.
const NO_SUCH_PROCESS: &[i32] = &[ESRCH, EPERM];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let pid = scene.victim();
    let info = || words(args![SIGURG, 0xffff_ffff_u64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let user = |name: &str, arguments| Case::call("LF2", "", name, arguments).fails(NO_SUCH_PROCESS);
    let mut cases = vec![
        user("kill", args![pid, SIGURG]),
        user("tkill", args![pid, SIGURG]),
        user("tgkill", args![pid, pid, SIGURG]),
        user("rt_sigqueueinfo", args![pid, SIGURG, info()]),
        user("rt_tgsigqueueinfo", args![pid, pid, SIGURG, info()]),
        user("pidfd_open", args![pid, 0]),
        user("prlimit64", args![pid, libc::RLIMIT_NOFILE, 0, room(16)]),
        user("sched_getaffinity", args![pid, 128, room(128)]),
        user("sched_setaffinity", args![pid, 128, words(args![u64::MAX])]),
        user("sched_setscheduler", args![pid, libc::SCHED_OTHER, numbers(&[0])]),
        user("sched_setparam", args![pid, numbers(&[0])]),
        user("sched_setattr", args![pid, numbers(&[48, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), 0]),
        user("setpriority", args![PRIO_PROCESS, pid, 1]),
        user("getpriority", args![PRIO_PROCESS, pid]),
        user("ioprio_set", args![1, pid, (2 << 13) | 7]),
        user("getpgid", args![pid]),
        user("getsid", args![pid]),
        user("migrate_pages", args![pid, 64, words(args![1]), words(args![1])]),
        user("move_pages", args![pid, 0, 0, 0, 0, 0]),
        user("kcmp", args![pid, pid, 0, 0, 0]),
        user("process_vm_readv", args![pid, words(args![room(8), 8]), 1, words(args![BAD, 8]), 1, 0])
            .outside(crate::case::OutsideExpectation::Reaches(&[libc::EFAULT])),
        user("ptrace", args![libc::PTRACE_SEIZE, pid, 0, 0]).by(ControlPlacement::Root),
    ];
    for (what, name) in [("by descriptor", "pidfd_send_signal"), ("a descriptor of its own", "pidfd_getfd")] {
        let mut script = Script::one("pidfd_open", args![pid, 0]);
        let descriptor = script.first();
        match name {
            "pidfd_getfd" => script.call(name, args![descriptor, 0, 0]),
            _ => script.call(name, args![descriptor, SIGURG, 0, 0]),
        };
        cases.push(Case::denied("LF2", format!("{name}: {what}"), script).fails(NO_SUCH_PROCESS));
    }
    cases
}
