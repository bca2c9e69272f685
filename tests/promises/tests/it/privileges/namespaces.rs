//! PK2: making and entering namespaces, by every call and for every kind.

use crate::case::{BAD, Case, ControlPlacement, HERE, OutsideExpectation, Script, args};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::{ForkMethod, SpecialAct};
use libc::{
    CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS,
    EBADF, EINVAL, ENOSYS, O_RDONLY,
};

const CLONE_NEWTIME: i32 = 0x80;

/// The kinds of namespaces: name, flag, file.
const KINDS: [(&str, i32, &str); 8] = [
    ("user", CLONE_NEWUSER, "user"),
    ("mount", CLONE_NEWNS, "mnt"),
    ("pid", CLONE_NEWPID, "pid_for_children"),
    ("network", CLONE_NEWNET, "net"),
    ("ipc", CLONE_NEWIPC, "ipc"),
    ("uts", CLONE_NEWUTS, "uts"),
    ("cgroup", CLONE_NEWCGROUP, "cgroup"),
    ("time", CLONE_NEWTIME, "time_for_children"),
];

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, flag, file) in KINDS {
        let free = |what: String, script| Case::denied("PK2", what, script).by(ControlPlacement::Free);
        cases.push(free(format!("unshare {kind}"), Script::one("unshare", args![flag])));
        if kind == "time" {
            // In `clone` this bit is part of the signal number.
            cases.push(fork(kind, ForkMethod::Clone3, flag).fails(&[ENOSYS]));
        } else {
            cases.push(fork(kind, ForkMethod::Clone, flag));
            cases.push(fork(kind, ForkMethod::Clone3, flag).fails(&[ENOSYS]));
            cases.push(free(
                format!("unshare {kind} and the user"),
                Script::one("unshare", args![flag | CLONE_NEWUSER]),
            ));
        }
        cases.push(enter(kind, flag, file));
    }
    cases.push(Case::sentinel("PK2", "setns", args![-1, 0], &[EBADF]).named("senseless"));
    cases.push(
        Case::sentinel("PK2", "clone3", args![BAD, 88], &[libc::EFAULT]).fails(&[ENOSYS]).named("senseless"),
    );
    // High bits that the kernel ignores must not hide a flag from the filter.
    let hidden = (1_u64 << 32) | CLONE_NEWUSER as u64;
    cases.push(
        Case::call("PK2", "with a high bit", "unshare", args![hidden])
            .outside(OutsideExpectation::Reaches(&[EINVAL])),
    );
    cases
}

fn fork(kind: &str, by: ForkMethod, flag: i32) -> Case {
    let flags = flag.cast_unsigned().into();
    Case::denied("PK2", format!("{by:?} {kind}"), Script::of(SpecialAct::Fork { by, flags }))
        .by(ControlPlacement::Free)
}

/// Returns a case that enters the process's own namespace, the only one with an accessible file; the control enters another
/// one.
fn enter(kind: &str, flag: i32, file: &str) -> Case {
    let mut script = Script::one("openat", args![HERE, format!("/proc/self/ns/{file}"), O_RDONLY, 0]);
    let namespace = script.first();
    script.prepared();
    script.call("setns", args![namespace, flag]);
    let case = Case::denied("PK2", format!("setns {kind}"), script).by(ControlPlacement::Free);
    match kind {
        // A process can't enter the user namespace that it is already in.
        "user" => case.outside(OutsideExpectation::Reaches(&[EINVAL])),
        // The control has made no time namespace, and an ordinary user may not enter the host's.
        "time" => case.by(ControlPlacement::Root),
        _ => case,
    }
}
