//! PK1: gaining capabilities or another user, in every way.

use crate::case::{
    Case, ControlPlacement, InsideExpectation, OutsideExpectation, Script, args, numbers, room,
};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EINVAL, EPERM};

/// Errnos for becoming another user: the namespace has no other user, or the process lacks the right.
const NOBODY_ELSE: &[i32] = &[EINVAL, EPERM];

/// `_LINUX_CAPABILITY_VERSION_3`, and the calling process.
const HEADER: [u32; 2] = [0x2008_0522, 0];

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = vec![
        set("every capability", [u32::MAX, u32::MAX, 0]),
        set("permitted ones", [0, u32::MAX, 0]),
        set("inheritable ones", [0, 0, u32::MAX]),
    ];
    let free = |what: &str, name: &str, arguments| {
        Case::call("PK1", what, name, arguments).by(ControlPlacement::Free)
    };
    cases.extend([0_u32, 8, 21, 38].map(ambient));
    cases.extend([
        free("drop one of the bounding set", "prctl", args![libc::PR_CAPBSET_DROP, 0, 0, 0, 0]),
        free("keep them over a change of user", "prctl", args![libc::PR_SET_SECUREBITS, 0x10, 0, 0, 0]),
        free("user 0", "setuid", args![0]).fails(NOBODY_ELSE),
        free("group 0", "setgid", args![0]).fails(NOBODY_ELSE),
        free("user 0", "setreuid", args![0, 0]).fails(NOBODY_ELSE),
        free("group 0", "setregid", args![0, 0]).fails(NOBODY_ELSE),
        free("user 0", "setresuid", args![0, 0, 0]).fails(NOBODY_ELSE),
        free("group 0", "setresgid", args![0, 0, 0]).fails(NOBODY_ELSE),
        Case::call("PK1", "group 0 besides", "setgroups", args![1, numbers(&[0])]).by(ControlPlacement::Root),
        Case::call("PK1", "no group at all", "setgroups", args![0, 0]).by(ControlPlacement::Root),
        free("new privileges again", "prctl", args![libc::PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0])
            .fails(&[EINVAL])
            .outside(OutsideExpectation::Reaches(&[EINVAL])),
    ]);
    cases.push(
        Case::call(
            "PK1",
            "whether privileges may be gained",
            "prctl",
            args![libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0],
        )
        .inside(InsideExpectation::Learns(|answer| answer.ret == 1))
        .outside(OutsideExpectation::Learns(|answer| answer.ret == 0)),
    );
    for (name, is_user) in [("setfsuid", true), ("setfsgid", false)] {
        // The call returns the previous id whether or not it succeeded; so the second call shows the result.
        let mut script = Script::one(name, args![0]);
        script.call(name, args![u64::from(u32::MAX)]);
        let what = format!("{name}: {} 0 for files", if is_user { "user" } else { "group" });
        cases.push(
            Case::denied("PK1", what, script)
                .inside(InsideExpectation::Learns(|answer| answer.ret == 1000))
                .outside(OutsideExpectation::Learns(|answer| answer.ret == 0))
                .by(ControlPlacement::Free),
        );
    }
    let mut look = Script::default();
    look.call("capget", args![numbers(&HEADER), room(24)]);
    cases.push(
        Case::denied("PK1", "capget", look)
            .inside(InsideExpectation::Learns(|answer| answer.ret == 0 && answer.bytes.is_empty()))
            .outside(OutsideExpectation::Learns(|answer| !answer.bytes.is_empty()))
            .by(ControlPlacement::Free),
    );
    cases
}

/// Returns a case that sets effective, permitted and inheritable capabilities, the lower and the upper half alike.
fn set(what: &str, sets: [u32; 3]) -> Case {
    let known = sets.map(|set| if set == 0 { 0 } else { 0x1ff });
    let data = [sets, known].concat();
    // The control has the capabilities, so setting them changes nothing; the inheritable ones come from the permitted ones.
    Case::call("PK1", what, "capset", args![numbers(&HEADER), numbers(&data)])
        .by(ControlPlacement::Free)
        .inside(InsideExpectation::Fails(&[EPERM]))
}

/// Returns a case with an ambient capability, which must first be inheritable.
fn ambient(bit: u32) -> Case {
    let mut inheritable = [u32::MAX, u32::MAX, 0, 0x1ff, 0x1ff, 0];
    inheritable[if bit < 32 { 2 } else { 5 }] = 1 << (bit % 32);
    let mut script = Script::default();
    script.call_or("capset", args![numbers(&HEADER), numbers(&inheritable)], &[EPERM]);
    script.call("prctl", args![libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, bit, 0, 0]);
    Case::denied("PK1", format!("ambient {bit}"), script).by(ControlPlacement::Free)
}
