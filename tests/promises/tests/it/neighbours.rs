//! FS8 and LK3: two sandboxes on one host find no traces of each other, neither at the same time nor one after the other.

use crate::case::{
    Case, HERE, InsideExpectation, OutsideExpectation, Script, args, local, local_length, room,
};
use crate::holding::HoldingProbe;
use crate::judge::{HelperProcesses, every_case_holds_beside};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_promises::attempt::{Attempt, AttemptResult};
use libc::{AF_UNIX, ECONNREFUSED, ENOENT, IPC_CREAT, O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, SOCK_STREAM};

#[test]
fn concurrent_sandboxes_see_nothing_of_each_other() {
    every_case_holds_beside("neighbours", &[at_once], NEIGHBOUR);
}

#[test]
fn sandbox_finds_nothing_of_its_predecessor() {
    every_case_holds_beside("successors", &[afterwards], PREDECESSOR);
}

/// A process that has left the canary everywhere and still runs.
pub(crate) const NEIGHBOUR: HelperProcesses = HelperProcesses {
    outside: |scene| Some(HoldingProbe::outside(scene, &plant(scene, &scene.outside()))),
    inside: |scene| {
        Some(HoldingProbe::inside(scene, StartMethod::Copy, &plant(scene, &AttemptPlace::inside())))
    },
};

/// A process that has left it and is gone.
pub(crate) const PREDECESSOR: HelperProcesses = HelperProcesses {
    outside: |scene| {
        drop(HoldingProbe::outside(scene, &plant(scene, &scene.outside())));
        None
    },
    inside: |scene| {
        drop(HoldingProbe::inside(scene, StartMethod::Copy, &plant(scene, &AttemptPlace::inside())));
        None
    },
};

/// Directories that every sandbox may write.
const WRITABLE: [&str; 4] = ["/tmp", "/dev/shm", "/home/agent", "/workspace"];

/// Returns an attempt that leaves the canary wherever that is permitted.
fn plant(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Attempt {
    let mut s = Script::default();
    for directory in WRITABLE {
        let path = format!("{}/{}-left", place.path(directory), scene.mark);
        let file = s.call("openat", args![HERE, path, O_CREAT | O_WRONLY, 0o644]);
        s.call("write", args![file, &scene.canary, 64]);
    }
    let kept = s.call("openat", args![HERE, place.path("/workspace/kept/file"), O_WRONLY | O_APPEND, 0]);
    s.call("write", args![kept, &scene.canary, 64]);
    s.call("shmget", args![key(scene), 4096, IPC_CREAT | 0o666]);
    s.call("semget", args![key(scene), 1, IPC_CREAT | 0o666]);
    s.call("msgget", args![key(scene), IPC_CREAT | 0o666]);
    let name = format!("@{}-neighbour", scene.mark);
    let socket = s.call("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    s.call("bind", args![socket, local(&name), local_length(&name)]);
    s.call("listen", args![socket, 8]);
    Attempt { case: "plant".to_owned(), steps: s.into_steps() }
}

/// Returns a key for shared memory that is unique on the host.
fn key(scene: &PreparedHost<'_>) -> u32 {
    u32::from_str_radix(&scene.mark[4..11], 16).unwrap()
}

pub(crate) fn at_once(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let name = format!("@{}-neighbour", scene.mark);
    let mut script = Script::one("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    let socket = script.first();
    script.call("connect", args![socket, local(&name), local_length(&name)]);
    let mut cases = look("FS8", scene, place);
    cases.push(Case::denied("FS8", "an abstract socket", script).fails(&[ECONNREFUSED, libc::EPERM]));
    cases
}

pub(crate) fn afterwards(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    look("LK3", scene, place)
}

/// Returns cases that look for all of it. The control removes what it finds if nothing else would.
fn look(row: &'static str, scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = WRITABLE
        .map(|directory| {
            let path = format!("{}/{}-left", place.path(directory), scene.mark);
            let script = crate::files::read(&path);
            Case::denied(row, format!("what is left in {directory}"), script).fails(&[ENOENT])
        })
        .into();
    let mut kept = Script::one("openat", args![HERE, place.path("/workspace/kept/file"), O_RDONLY, 0]);
    let file = kept.first();
    kept.call("read", args![file, room(128), 128]);
    cases.push(
        Case::denied(row, "a change to a file that both have a copy of", kept)
            .inside(InsideExpectation::Learns(|answer: &AttemptResult| answer.bytes == "as it was"))
            .outside(OutsideExpectation::Learns(|answer: &AttemptResult| answer.bytes.len() > 64))
            .only(&[StartMethod::Copy]),
    );
    for (what, get, control) in [
        ("shared memory", "shmget", "shmctl"),
        ("semaphores", "semget", "semctl"),
        ("messages", "msgget", "msgctl"),
    ] {
        let mut script = match get {
            "msgget" => Script::one(get, args![key(scene), 0]),
            _ => Script::one(get, args![key(scene), 0, 0]),
        };
        let found = script.first();
        match get {
            "semget" => script.call(control, args![found, 0, libc::IPC_RMID, 0]),
            _ => script.call(control, args![found, libc::IPC_RMID, 0]),
        };
        cases.push(Case::denied(row, what, script).fails(&[ENOENT]));
    }
    cases
}
