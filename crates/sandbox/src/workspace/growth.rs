//! How much the directories that a sandbox may write to on the host's disk have grown since it was made.
//!
//! The kernel has no limit for a directory that works on every file system. So it is looked, the more often the less is
//! left: first at what is free on the whole file system, in bytes and in files, which costs nothing, and only if that has
//! become less at every file. What was deleted and is still open counts too.

use crate::directory::{Directory, DirectoryError};
use belljar_confine::sealed::Handle;
use rustix::fs::{AtFlags, FileType, fstatvfs, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Directories on one file system that may grow so far together and no further.
#[derive(Debug)]
pub struct Growth {
    trees: Vec<Directory>,
    most_bytes: u64,
    bytes_at_first: u64,
    free_at_first: Free,
    measured_at: Option<Instant>,
    next_look: Instant,
}

/// What there is left of file systems.
#[derive(Debug, Clone, Copy)]
struct Free {
    bytes: u64,
    /// Files that can still be made, where that is limited. One that holds nothing takes no other room.
    files: u64,
}

/// What the files of a tree take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Measured {
    bytes: u64,
    /// Whether everything could be looked at.
    is_whole: bool,
}

/// No disk takes more than this in a second.
const FASTEST_BYTES: u64 = 2 << 30;

/// What a file takes at least: its name and its inode.
const SMALLEST_FILE_BYTES: u64 = 1 << 10;

/// Where these directories are, inside.
const ON_DISK: [&str; 2] = ["/workspace", "/job"];

/// So many files are not looked at.
const MOST_FILES: usize = 4_000_000;

const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Others on the same file system may delete what the sandbox fills up again.
const LONGEST_UNMEASURED: Duration = Duration::from_secs(5);

// === impl Growth ===

impl Growth {
    /// Begins to look after directories that may take so much more together than they do now.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be measured.
    pub fn watch(trees: Vec<Directory>, most_bytes: u64) -> Result<Self, DirectoryError> {
        // What may not be read is taken to be empty: if it can be read later, it counts as new.
        let bytes_at_first = measure_all(&trees).map_or(0, |measured| measured.bytes);
        let free_at_first = free(&trees)?;
        let next_look = Instant::now();
        Ok(Self { trees, most_bytes, bytes_at_first, free_at_first, measured_at: None, next_look })
    }

    /// When it is to be looked at again.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Whether it has outgrown what it may take. What can't be measured is taken to be as large as the file system
    /// has lost.
    pub fn has_outgrown(&mut self, sandbox: &Handle) -> bool {
        let begun = Instant::now();
        let now = free(&self.trees).unwrap_or(Free { bytes: 0, files: 0 });
        let lost = self.free_at_first.bytes.saturating_sub(now.bytes);
        let lost_files = self.free_at_first.files.saturating_sub(now.files);
        let lost_at_most = lost.saturating_add(lost_files.saturating_mul(SMALLEST_FILE_BYTES));
        let is_due = self.measured_at.is_none_or(|at| begun.duration_since(at) >= LONGEST_UNMEASURED);
        let grown = match is_due || lost_at_most >= self.most_bytes / 2 {
            true => {
                self.measured_at = Some(begun);
                let measured = measure_all(&self.trees).unwrap_or_default();
                let grown = measured.bytes.saturating_sub(self.bytes_at_first);
                let grown = grown.saturating_add(deleted_bytes(sandbox));
                if measured.is_whole { grown } else { grown.max(lost) }
            }
            false => lost_at_most,
        };
        let left = self.most_bytes.saturating_sub(grown);
        // Looking must not become the work itself.
        let rest = begun.elapsed().saturating_mul(4);
        self.next_look = Instant::now() + pause(left).max(rest);
        grown > self.most_bytes
    }
}

fn pause(left_bytes: u64) -> Duration {
    let milliseconds = left_bytes.saturating_mul(1000) / FASTEST_BYTES;
    Duration::from_millis(milliseconds).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// What is free on the file systems of all, one that several are on counted for each of them.
fn free(trees: &[Directory]) -> Result<Free, DirectoryError> {
    let none = Free { bytes: 0, files: 0 };
    let all = trees.iter().try_fold(none, |all, tree| {
        let of = fstatvfs(tree)?;
        let bytes = all.bytes.saturating_add(of.f_bfree.saturating_mul(of.f_frsize));
        Ok(Free { bytes, files: all.files.saturating_add(of.f_ffree) })
    });
    all.map_err(|source| DirectoryError { path: ".".into(), source })
}

fn measure_all(trees: &[Directory]) -> Result<Measured, DirectoryError> {
    trees.iter().try_fold(Measured { bytes: 0, is_whole: true }, |all, tree| {
        let Measured { bytes, is_whole } = measure(tree)?;
        Ok(Measured { bytes: all.bytes.saturating_add(bytes), is_whole: all.is_whole && is_whole })
    })
}

/// What the files of a tree take. Depth costs nothing: a directory is let go of when its last part is looked at.
fn measure(tree: &Directory) -> Result<Measured, DirectoryError> {
    let mut measured = Measured { bytes: 0, is_whole: true };
    let mut files = 0;
    let mut counted = HashSet::new();
    let mut directories = Vec::new();
    let mut pending = Vec::new();
    match tree.open(Path::new(".")) {
        Ok(directory) => directories.push(Rc::new(directory)),
        Err(_) => measured.is_whole = false,
    }
    loop {
        if let Some(directory) = directories.pop() {
            for entry in directory.names(MOST_FILES - files)? {
                files += 1;
                // It may have gone meanwhile.
                let Ok(stat) = statat(&*directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let is_new = stat.st_nlink < 2 || counted.insert((stat.st_dev, stat.st_ino));
                if entry.kind == FileType::Directory {
                    pending.push((Rc::clone(&directory), entry.name));
                }
                if is_new || entry.kind == FileType::Directory {
                    let blocks = u64::try_from(stat.st_blocks).unwrap_or_default() * 512;
                    measured.bytes = measured.bytes.saturating_add(blocks.max(SMALLEST_FILE_BYTES));
                }
            }
        }
        let Some((parent, name)) = pending.pop() else { return Ok(measured) };
        match parent.open(Path::new(OsStr::from_bytes(name.to_bytes()))) {
            Ok(directory) => directories.push(Rc::new(directory)),
            Err(DirectoryError { source: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, .. }) => {}
            Err(DirectoryError { source: Errno::ACCESS, .. }) => measured.is_whole = false,
            Err(error) => return Err(error),
        }
    }
}

/// What files take that have no name any more, and are held open by a sandbox's processes.
fn deleted_bytes(sandbox: &Handle) -> u64 {
    let mut counted = HashSet::new();
    let mut bytes = 0_u64;
    let mut pids = vec![sandbox.pid()];
    while let Some(pid) = pids.pop() {
        for descriptor in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let path = descriptor.path();
            // As the process sees it; what is in memory has a limit of its own.
            let is_on_disk = fs::read_link(&path)
                .is_ok_and(|target| ON_DISK.iter().any(|place| target.starts_with(place)));
            let Some(stat) = is_on_disk.then(|| fs::metadata(&path).ok()).flatten() else { continue };
            if stat.nlink() == 0 && counted.insert((stat.dev(), stat.ino())) {
                bytes = bytes.saturating_add(stat.blocks().saturating_mul(512));
            }
        }
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            pids.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    // The numbers are somebody else's by now, if the sandbox is gone.
    if sandbox.has_ended() { 0 } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open_host(folder.path()).unwrap();
        (folder, directory)
    }

    #[test]
    fn every_file_counts_once_and_an_empty_one_counts_too() {
        let (folder, directory) = tree();
        let empty = measure(&directory).unwrap().bytes;
        fs::write(folder.path().join("a"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        let one = measure(&directory).unwrap().bytes;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&(one - empty)), "{one} {empty}");
        fs::write(folder.path().join("c"), "").unwrap();
        assert!(measure(&directory).unwrap().bytes >= one + SMALLEST_FILE_BYTES);
    }

    #[test]
    fn what_lies_deep_counts_as_well() {
        let (folder, directory) = tree();
        let deep = folder.path().join("d/".repeat(300));
        fs::create_dir_all(&deep).unwrap();
        let before = measure(&directory).unwrap().bytes;
        fs::write(deep.join("file"), vec![1; 1 << 20]).unwrap();
        assert!(measure(&directory).unwrap().bytes >= before + (1 << 20));
    }

    #[test]
    fn the_less_is_left_the_sooner_it_is_looked_again() {
        assert_eq!(pause(0), SHORTEST_PAUSE);
        assert_eq!(pause(u64::MAX), LONGEST_PAUSE);
    }
}
