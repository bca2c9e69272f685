//! The time that another process on the host waits for a durable write, while a sandbox uses the disk as hard as it can.
//!
//! The files are on a disk and not in memory, because the two share the disk. The last contestant is the control: an
//! operation that a sandbox forbids.

use crate::contest::{Contestant, hold, judge, missing};
use crate::{Programs, installed};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TURNS: usize = 20;
/// Number of the neighbour's writes in each turn.
const WRITES: usize = 10;

const SYNC: &str = "$| = 1; print \"begun\\n\"; while (1) { syscall(162) }";
const FSYNC: &str = "use IO::Handle; $| = 1; open(my $f, '>', 'storm') or die; print \"begun\\n\";
    while (1) { seek($f, 0, 0); syswrite($f, 'x' x 4096); $f->sync or die }";
const OTHERS: &str = "use IO::Handle; $| = 1; open(my $f, '<', '/usr/bin/perl') or die; print \"begun\\n\";
    while (1) { $f->sync or die }";
const RENAMES: &str = "$| = 1; open(my $f, '>', 'a') or die; print \"begun\\n\";
    while (1) { rename('a', 'b') or die; rename('b', 'a') or die }";

/// The process that uses the disk.
struct DiskLoad(Child);

// === impl DiskLoad ===

impl DiskLoad {
    /// Starts it, and returns when it has begun.
    fn begin(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program that starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "begun\n", "the storm didn't begin");
        Self(child)
    }
}

impl Drop for DiskLoad {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(programs: &Programs) -> bool {
    if installed(&["perl"]).is_none() {
        return missing("perl");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = programs.belljar();
    let sealed = |script: &'static str| {
        let mut command = Command::new(&program);
        command.env("BELLJAR_STATE_DIR", folder.path().join("state"));
        command.args(["exec", "--workspace-copy"]).arg(source(folder.path()));
        command.args(["--", "perl", "-e", script]);
        command
    };
    let not_sealed = |script: &'static str| {
        let mut command = Command::new("perl");
        command.args(["-e", script]).current_dir(folder.path());
        command
    };
    let storm = std::cell::RefCell::new(None);
    let neighbour = File::create(folder.path().join("neighbour")).expect("a file");
    let beside = |name, begin: Box<dyn Fn() -> Option<DiskLoad>>| {
        Contestant { name, prepare: Box::new(|| ()), turn: Box::new(|| write_durably(&neighbour)) }.prepared(
            {
                let storm = &storm;
                move || {
                    // The previous one ends before this one begins.
                    drop(storm.take());
                    storm.replace(begin());
                }
            },
        )
    };
    let times = hold(
        "neighbour: ten small writes made durable, beside a sandbox that works the disk",
        TURNS,
        vec![
            beside("no neighbour", Box::new(|| None)),
            beside("sealed: sync without end", Box::new(|| Some(DiskLoad::begin(sealed(SYNC))))),
            beside("sealed: renames without end", Box::new(|| Some(DiskLoad::begin(sealed(RENAMES))))),
            beside("sealed: fsync of its own file", Box::new(|| Some(DiskLoad::begin(sealed(FSYNC))))),
            beside(
                "sealed: fsync of what it may only read",
                Box::new(|| Some(DiskLoad::begin(sealed(OTHERS)))),
            ),
            beside("not sealed: sync without end", Box::new(|| Some(DiskLoad::begin(not_sealed(SYNC))))),
        ],
    );
    drop(storm.take());
    if times[5].median() <= times[0].median() {
        println!(
            "\nThe control slows nothing down: the disk shows no contention now, so this run proves nothing."
        );
        return false;
    }
    // All are judged, even if one has missed its goal.
    times[1..5].iter().map(|beside| judge(beside, &times[0], 1.2)).fold(true, |all, met| all & met)
}

fn source(folder: &Path) -> std::path::PathBuf {
    let source = folder.join("source");
    std::fs::create_dir_all(&source).expect("a folder");
    source
}

fn write_durably(mut file: &File) {
    for _ in 0..WRITES {
        file.write_all(&[0; 4096]).expect("a write");
        file.sync_data().expect("a durable write");
    }
}
