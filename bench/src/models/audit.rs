//! The cost of recording every call on disk: the load of `proxy`, with the audit log and without.

use super::house::ProxyProcess;
use super::proxy::provider;
use super::turns::{LoadPath, TurnLoad};
use crate::Programs;
use crate::rounds::{Goal, judge, ratio};
use belljar_store::audit::folder_in;
use belljar_store::audit::verify::{Verdict, VerifyRequirements, verify};
use std::time::Duration;

const MANY: TurnLoad = TurnLoad { connections: 64, lasts: Duration::from_secs(2), rounds: 7 };

pub(crate) fn run(_: &Programs) -> bool {
    // Beside this program, which is on a disk: a file system in memory makes nothing durable.
    let own = std::env::current_exe().expect("the path of this executable");
    let folder = tempfile::tempdir_in(own.parent().expect("a folder")).expect("a temporary folder");
    if is_in_memory(folder.path()) {
        println!("\n{} is in memory: nothing can be made durable there", folder.path().display());
        return false;
    }
    let (_upstream, provider) = provider();
    let log = folder_in(folder.path());
    let (plain, audited) = (
        ProxyProcess::start(folder.path(), provider, None),
        ProxyProcess::start(folder.path(), provider, Some(folder.path())),
    );
    let lanes = [
        LoadPath {
            name: "belljar, nothing written down",
            target: &plain.socket,
            between: vec![&plain.process],
        },
        LoadPath {
            name: "belljar, every call on the disk",
            target: &audited.socket,
            between: vec![&audited.process],
        },
    ];
    let figures = MANY.hold("audit: 64 connections by a socket, every call written down", &lanes);
    let answered = figures[1].answered as u64;
    drop(lanes);
    let written: u64 = audited.process.last_word();
    assert!(written >= answered, "{answered} calls were answered, {written} recorded");
    match verify(&log, &VerifyRequirements::default()).expect("a log") {
        // Each call also has a begin record, and the log has one end record.
        Verdict::Intact(extent) => assert_eq!(extent.records, 2 * written + 1, "records in the log"),
        Verdict::Broken(finding) => panic!("the log is not intact: {finding:?}"),
    }
    println!("\n{written} calls are on the disk, and the log is intact.");
    let kept = ratio(&figures[1].a_second, &figures[0].a_second);
    judge("calls a second, with the audit / without", kept, Goal::AtLeast(0.9))
}

fn is_in_memory(path: &std::path::Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(path).expect("a file system").f_type == TMPFS
}
