//! Growth of the directories on the host's disk that a sandbox may write to, since it was made (disk quota).
//!
//! The kernel has no quota for a directory that works on every file system. So the directories are measured, more often the
//! less space is left. First comes the free space of the whole file system, in bytes and in files, which costs nothing.
//! Only if it has shrunk, every file is looked at. Files that were deleted and are still held open count too. What is held
//! out of sight, such as a descriptor that was sent and not received, shows as a loss of the file system beyond what is
//! found. Others may have taken that space. So it counts if the sandbox has written more than its quota, or if it holds
//! something out of sight at several looks in a row, for which it is stopped.
//!
//! Whatever its quota, it leaves a reserve of the disk to the host ([`FreeSpace`]).

mod processes;
mod standstill;

use belljar_confine::sealed::InitHandle;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::reserve::FreeSpace;
use rustix::fs::{AtFlags, FileType, fstatvfs, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Directories on one file system that may grow so far together and no further.
#[derive(Debug)]
pub struct TreeGrowth {
    trees: Vec<Directory>,
    most_bytes: u64,
    bytes_at_first: u64,
    free_at_first: FreeResources,
    /// Maximum number of files that are looked at.
    most_files: usize,
    last: Option<LastScan>,
    next_look: Instant,
    /// Time since which the files that its processes hold can't be looked at.
    unseen_since: Option<Instant>,
    /// Number of looks in a row at which it may have held something out of sight.
    suspicions: u32,
    /// Space that others had taken when it held nothing out of sight, and the time of that.
    excused: Option<(u64, Instant)>,
}

/// Growth of a directory.
#[derive(Debug)]
pub(crate) struct WorkspaceGrowth {
    tree: [Directory; 1],
    bytes_at_first: u64,
    free_at_first: Option<u64>,
}

/// Result of the last look at every file.
#[derive(Debug, Clone, Copy)]
struct LastScan {
    at: Instant,
    took: Duration,
    grown: u64,
    /// Loss of the file system at that time.
    lost: u64,
    is_whole: bool,
}

/// Free space and files of file systems.
#[derive(Debug, Clone, Copy)]
struct FreeResources {
    bytes: u64,
    /// Files that can still be made, where that is limited. One that holds nothing takes no other room.
    files: u64,
}

/// Loss of the file systems since the sandbox was made.
#[derive(Debug, Clone, Copy, Default)]
struct LostResources {
    bytes: u64,
    files: u64,
}

/// Disk usage of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TreeUsage {
    bytes: u64,
    /// True if everything could be looked at.
    is_whole: bool,
}

/// No disk takes more than this in a second.
const FASTEST_BYTES: u64 = 2 << 30;

/// Minimum disk usage of a file, in bytes: its name and its inode.
const SMALLEST_FILE_BYTES: u64 = 1 << 10;

/// Maximum number of files that are looked at.
const MOST_FILES: usize = 4_000_000;

/// A process that is just being started can't be looked at, which takes its time on a busy machine.
const LONGEST_UNSEEN: Duration = Duration::from_millis(500);

/// A program may just be passing a descriptor on.
const MOST_SUSPICIONS: u32 = 3;

/// Time for which losses caused by others are excused: others may give the space back, and the sandbox take it.
const LONGEST_EXCUSED: Duration = Duration::from_secs(10);

const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Others on the same file system may delete what the sandbox fills up again.
const LONGEST_UNMEASURED: Duration = Duration::from_secs(5);

/// A sandbox that takes longer to measure is measured on a thread of its own.
const LONG: Duration = Duration::from_millis(50);

/// Returns the bytes of disk that the files of a tree take, as far as it may be read.
pub(crate) fn bytes_of(tree: Directory) -> u64 {
    measure_all(&[tree], MOST_FILES).map_or(0, |measured| measured.bytes)
}

// === impl WorkspaceGrowth ===

impl WorkspaceGrowth {
    /// Measured from what it is now.
    pub(crate) fn since_now(tree: Directory) -> Self {
        let tree = [tree];
        // Unreadable directories are taken to be empty: if they can be read later, their content counts as new.
        let bytes_at_first = measure_all(&tree, MOST_FILES).map_or(0, |measured| measured.bytes);
        let free_at_first = free(&tree).ok().map(|free| free.bytes);
        Self { tree, bytes_at_first, free_at_first }
    }

    /// Returns the growth in bytes; where not everything can be looked at, the loss of the file system.
    pub(crate) fn bytes(&self) -> u64 {
        let now = measure_all(&self.tree, MOST_FILES).unwrap_or_default();
        let found = now.bytes.saturating_sub(self.bytes_at_first);
        if now.is_whole {
            return found;
        }
        let free = free(&self.tree).map_or(0, |free| free.bytes);
        found.max(self.free_at_first.map_or(u64::MAX, |first| first.saturating_sub(free)))
    }
}

// === impl TreeGrowth ===

impl TreeGrowth {
    /// Begins to watch directories that may grow together by that many bytes.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be measured.
    pub fn watch(trees: Vec<Directory>, most_bytes: u64) -> Result<Self, DirectoryError> {
        // Unreadable directories are taken to be empty: if they can be read later, their content counts as new.
        let bytes_at_first = measure_all(&trees, MOST_FILES).map_or(0, |measured| measured.bytes);
        let free_at_first = free(&trees)?;
        let next_look = Instant::now();
        Ok(Self {
            trees,
            most_bytes,
            bytes_at_first,
            free_at_first,
            most_files: MOST_FILES,
            last: None,
            next_look,
            unseen_since: None,
            suspicions: 0,
            excused: None,
        })
    }

    /// Returns the time of the next look.
    pub fn next_look(&self) -> Instant {
        self.next_look
    }

    /// Returns true if measuring it takes long.
    pub fn takes_long(&self) -> bool {
        self.last.is_some_and(|last| last.took > LONG)
    }

    /// Returns true if it has exceeded its quota. A tree that can't be measured, twice or for longer than a moment, counts
    /// as everything that the file system has lost. So does all of it without a sandbox whose processes can be looked at.
    pub fn has_outgrown(&mut self, sandbox: Option<&InitHandle>) -> bool {
        let now = free(&self.trees).unwrap_or(FreeResources { bytes: 0, files: 0 });
        let lost = LostResources {
            bytes: self.free_at_first.bytes.saturating_sub(now.bytes),
            files: self.free_at_first.files.saturating_sub(now.files),
        };
        let room = self.room();
        let (grown, most) = match self.estimate(lost.with_files(), room) {
            // The estimate includes writes by others, so the sandbox is not blamed for the remaining space.
            Some(grown) => (grown, self.most_bytes),
            None => (self.measure(sandbox, lost), self.most_bytes.min(room.most_bytes())),
        };
        let pause = match self.suspicions {
            0 => pause(most.saturating_sub(grown).min(room.left_bytes(grown))),
            _ => SHORTEST_PAUSE,
        };
        self.next_look = Instant::now() + pause;
        grown > most
    }

    /// Returns the space left on the disk; no space where that can't be determined.
    fn room(&self) -> FreeSpace {
        let rooms = self.trees.iter().map(FreeSpace::of);
        let none = FreeSpace { available_bytes: 0, reserve_bytes: 1 };
        rooms.map(|room| room.unwrap_or(none)).min_by_key(|room| room.available_bytes).unwrap_or(none)
    }

    /// Returns the maximum growth since it was last measured; `None` if it is to be measured again. A look at every file
    /// must not become the main work, unless the quota may be exceeded.
    fn estimate(&self, lost: u64, room: FreeSpace) -> Option<u64> {
        let last = self.last?;
        let grown = last.grown.saturating_add(lost.saturating_sub(last.lost));
        let since = last.at.elapsed();
        let is_near = lost >= self.most_bytes / 2 || !last.is_whole || !room.takes(0);
        let is_due = (is_near || since >= LONGEST_UNMEASURED) && since >= last.took.saturating_mul(4);
        (!is_due && grown <= self.most_bytes).then_some(grown)
    }

    fn measure(&mut self, sandbox: Option<&InitHandle>, lost: LostResources) -> u64 {
        let begun = Instant::now();
        let measured = measure_all(&self.trees, self.most_files).unwrap_or_default();
        let held = sandbox.map_or(TreeUsage::default(), processes::deleted);
        let found = measured.bytes.saturating_sub(self.bytes_at_first).saturating_add(held.bytes);
        let is_whole = measured.is_whole && held.is_whole;
        let was_whole = self.last.is_none_or(|last| last.is_whole);
        let is_long_unseen = self.is_long_unseen(held.is_whole, begun);
        let may_be_starting = sandbox.is_some() && measured.is_whole && !is_long_unseen;
        let grown = match (is_whole, sandbox) {
            // Files count, too: one that holds nothing takes no bytes.
            (false, _) if !was_whole && !may_be_starting => found.max(lost.with_files()),
            (true, Some(sandbox)) => {
                found + self.out_of_sight(sandbox, held.bytes, lost.bytes.saturating_sub(found))
            }
            _ => found,
        };
        self.last =
            Some(LastScan { at: begun, took: begun.elapsed(), grown, lost: lost.with_files(), is_whole });
        grown
    }

    /// Returns true if the files that its processes hold can't be looked at for longer than it takes to start a process.
    fn is_long_unseen(&mut self, is_seen: bool, now: Instant) -> bool {
        if is_seen {
            self.unseen_since = None;
            return false;
        }
        now.duration_since(*self.unseen_since.get_or_insert(now)) >= LONGEST_UNSEEN
    }

    /// Returns how much of the file system's unexplained loss is the sandbox's, beyond what was seen to be held.
    fn out_of_sight(&mut self, sandbox: &InitHandle, seen_bytes: u64, unexplained: u64) -> u64 {
        let is_excused = |(excused, at): (u64, Instant)| {
            at.elapsed() < LONGEST_EXCUSED && unexplained <= excused.saturating_add(self.most_bytes / 4)
        };
        if unexplained <= self.most_bytes || self.excused.is_some_and(is_excused) {
            self.suspicions = 0;
            return 0;
        }
        if processes::written(sandbox) > self.most_bytes {
            return unexplained;
        }
        let found = standstill::inspect(sandbox);
        match found.may_hide {
            true => self.suspicions += 1,
            false => (self.suspicions, self.excused) = (0, Some((unexplained, Instant::now()))),
        }
        match self.suspicions >= MOST_SUSPICIONS {
            true => unexplained,
            // Files that were passed around before are visible now.
            false => found.held.bytes.saturating_sub(seen_bytes),
        }
    }
}

// === impl LostResources ===

impl LostResources {
    /// Returns the loss in bytes, including that of empty files.
    fn with_files(self) -> u64 {
        self.bytes.saturating_add(self.files.saturating_mul(SMALLEST_FILE_BYTES))
    }
}

fn pause(left_bytes: u64) -> Duration {
    let milliseconds = left_bytes.saturating_mul(1000) / FASTEST_BYTES;
    Duration::from_millis(milliseconds).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Returns the free space on the file systems of all trees. A file system with several trees counts once for each of them.
fn free(trees: &[Directory]) -> Result<FreeResources, DirectoryError> {
    let none = FreeResources { bytes: 0, files: 0 };
    let all = trees.iter().try_fold(none, |all, tree| {
        let of = fstatvfs(tree)?;
        let bytes = all.bytes.saturating_add(of.f_bfree.saturating_mul(of.f_frsize));
        Ok(FreeResources { bytes, files: all.files.saturating_add(of.f_ffree) })
    });
    all.map_err(|source| DirectoryError { path: ".".into(), source })
}

fn measure_all(trees: &[Directory], most_files: usize) -> Result<TreeUsage, DirectoryError> {
    trees.iter().try_fold(TreeUsage { bytes: 0, is_whole: true }, |all, tree| {
        let TreeUsage { bytes, is_whole } = measure(tree, most_files)?;
        Ok(TreeUsage { bytes: all.bytes.saturating_add(bytes), is_whole: all.is_whole && is_whole })
    })
}

/// Measures the disk usage of a tree. Depth costs nothing: a directory is closed once its last entry is looked at.
fn measure(tree: &Directory, most_files: usize) -> Result<TreeUsage, DirectoryError> {
    let mut measured = TreeUsage { bytes: 0, is_whole: true };
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
            for entry in directory.names(most_files - files)? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open_host(folder.path()).unwrap();
        (folder, directory)
    }

    #[test]
    fn every_file_counts_once_and_an_empty_one_counts_too() {
        let (folder, directory) = tree();
        let empty = measure(&directory, MOST_FILES).unwrap().bytes;
        fs::write(folder.path().join("a"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        let one = measure(&directory, MOST_FILES).unwrap().bytes;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&(one - empty)), "{one} {empty}");
        fs::write(folder.path().join("c"), "").unwrap();
        assert!(measure(&directory, MOST_FILES).unwrap().bytes >= one + SMALLEST_FILE_BYTES);
    }

    #[test]
    fn empty_files_count_where_there_are_more_names_than_are_looked_at() {
        const EMPTY_FILES: u64 = 600_000;
        let grown = |files| {
            let (folder, directory) = tree();
            let mut growth = TreeGrowth::watch(vec![directory], 300 << 20).unwrap();
            growth.most_files = 5;
            fs::write(folder.path().join("linked"), "").unwrap();
            (0..5).for_each(|name| {
                fs::hard_link(folder.path().join("linked"), folder.path().join(name.to_string())).unwrap();
            });
            // Growth that can't be measured counts from the second time on.
            growth.measure(None, LostResources { bytes: 0, files });
            growth.measure(None, LostResources { bytes: 0, files })
        };
        assert!(grown(0) < 1 << 20, "links to one file take nothing");
        assert!(grown(EMPTY_FILES) >= EMPTY_FILES * SMALLEST_FILE_BYTES);
    }

    #[test]
    fn what_others_write_does_not_count_while_a_process_is_just_being_started() {
        let (_folder, directory) = tree();
        let mut growth = TreeGrowth::watch(vec![directory], 1 << 20).unwrap();
        let begun = Instant::now();
        assert!(!growth.is_long_unseen(false, begun));
        assert!(!growth.is_long_unseen(false, begun + LONGEST_UNSEEN / 2));
        assert!(growth.is_long_unseen(false, begun + LONGEST_UNSEEN));
        assert!(!growth.is_long_unseen(true, begun + LONGEST_UNSEEN));
        assert!(!growth.is_long_unseen(false, begun + LONGEST_UNSEEN * 2), "it begins anew");
    }

    #[test]
    fn what_lies_deep_counts_as_well() {
        let (folder, directory) = tree();
        let deep = folder.path().join("d/".repeat(300));
        fs::create_dir_all(&deep).unwrap();
        let before = measure(&directory, MOST_FILES).unwrap().bytes;
        fs::write(deep.join("file"), vec![1; 1 << 20]).unwrap();
        assert!(measure(&directory, MOST_FILES).unwrap().bytes >= before + (1 << 20));
    }

    #[test]
    fn the_less_is_left_the_sooner_it_is_looked_again() {
        assert_eq!(pause(0), SHORTEST_PAUSE);
        assert_eq!(pause(u64::MAX), LONGEST_PAUSE);
    }
}
