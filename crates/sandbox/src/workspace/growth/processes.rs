//! What of a sandbox's disk is in no directory: files that have no name any more and that its processes hold, and what they
//! have written altogether.
//!
//! PID 1 is ours, and holds nothing. What nobody may look at is told as such; what has ended meanwhile holds nothing.

use super::Measured;
use belljar_confine::sealed::Handle;
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the directories of the host are, inside.
const ON_DISK: [&str; 2] = ["/workspace", "/job"];

/// What follows the name of a file that is gone.
const GONE: &str = " (deleted)";

#[derive(Default)]
struct Held {
    counted: HashSet<(u64, u64)>,
    bytes: u64,
    is_partial: bool,
}

/// What the files take that have no name any more.
pub(super) fn deleted(sandbox: &Handle) -> Measured {
    let mut held = Held::default();
    for pid in descendants(sandbox.pid()) {
        held.look_at(pid);
    }
    // The numbers are somebody else's by now, if the sandbox is gone.
    match sandbox.has_ended() {
        true => Measured { bytes: 0, is_whole: true },
        false => Measured { bytes: held.bytes, is_whole: !held.is_partial },
    }
}

/// What all its processes have written to disks since they began, those that are over included. A part of it, where not all
/// may be looked at.
pub(super) fn written(sandbox: &Handle) -> u64 {
    let of_one = |pid: i32| {
        let told = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
    };
    // A process that is over is counted with whoever has waited for it; in the end that is PID 1.
    let all = descendants(sandbox.pid()).into_iter().chain([sandbox.pid()]);
    let bytes = all.map(of_one).fold(0, u64::saturating_add);
    if sandbox.has_ended() { 0 } else { bytes }
}

fn descendants(pid: i32) -> Vec<i32> {
    let (mut found, mut pending) = (Vec::new(), vec![pid]);
    while let Some(pid) = pending.pop() {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            pending.extend(children.inspect(|child| found.push(*child)));
        }
    }
    found
}

// === impl Held ===

impl Held {
    fn look_at(&mut self, pid: i32) {
        let done = self.descriptors(pid).and_then(|()| self.mappings(pid));
        self.is_partial |= done.is_err_and(|error| !is_gone(&error));
    }

    /// Each thread may have a table of its own.
    fn descriptors(&mut self, pid: i32) -> io::Result<()> {
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let descriptors = match fs::read_dir(thread?.path().join("fd")) {
                Err(error) if is_gone(&error) => continue,
                descriptors => descriptors?,
            };
            for descriptor in descriptors {
                let Ok(descriptor) = descriptor else { continue };
                let path = descriptor.path();
                // As the process sees it; what is in memory has a limit of its own.
                if fs::read_link(&path).is_ok_and(|target| is_on_disk(&target))
                    && let Ok(found) = fs::metadata(&path)
                {
                    self.count(&found);
                }
            }
        }
        Ok(())
    }

    /// A file that is mapped needs no descriptor.
    fn mappings(&mut self, pid: i32) -> io::Result<()> {
        let mappings = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut seen = HashSet::new();
        for line in mappings.lines().filter(|line| line.ends_with(GONE)) {
            let mut words = line.splitn(6, ' ');
            let (range, device, inode) = (words.next(), words.nth(2), words.next());
            let target = words.next().unwrap_or_default().trim_start();
            if !is_on_disk(Path::new(target)) || !seen.insert((device, inode)) {
                continue;
            }
            match fs::metadata(format!("/proc/{pid}/map_files/{}", range.unwrap_or_default())) {
                Ok(found) => self.count(&found),
                Err(error) => self.is_partial |= !is_gone(&error),
            }
        }
        Ok(())
    }

    fn count(&mut self, found: &Metadata) {
        if found.nlink() == 0 && self.counted.insert((found.dev(), found.ino())) {
            self.bytes = self.bytes.saturating_add(found.blocks().saturating_mul(512));
        }
    }
}

fn is_on_disk(target: &Path) -> bool {
    ON_DISK.iter().any(|place| target.starts_with(place))
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}
