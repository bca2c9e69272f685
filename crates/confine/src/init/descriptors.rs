//! Kernel memory behind the descriptors of a sandbox's programs that is charged to no control group: locks on files, and
//! the state of directories that are being read.
//!
//! A file system keeps some 10 KiB for each descriptor by which a directory is read. An overlay keeps a list of all names
//! in it, and another one for each descriptor, if names were added in between. Their sizes are not reported, so they are
//! estimated, and rather too high. It isn't reported either if a directory was read, so every open one counts. Where the
//! first estimate is too much, the names in each directory are counted, and few names are no reason to end a sandbox.
//!
//! Not everything can be seen: descriptors in flight over local sockets are in no table, a process that is not dumpable
//! hides its own, and a table may be handed on to a process that begins meanwhile. A lock of `flock` also lives on with a
//! mapping of its file, in no table; then each has an open file and a mapping, which are charged to memory.

use super::look_schedule::ScanPace;
use crate::kernel::processes::share_descriptors;
use crate::listing::numbers_in;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, readlinkat, statx};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::read_dir;
use std::mem::MaybeUninit;

/// Estimate for a directory that the file system itself lists, in bytes.
const OF_DIRECTORY: u64 = 16 << 10;
/// Estimate for a directory that an overlay lists, in bytes: memory for the names of the layer below, which aren't
/// reported.
const OF_OVERLAY: u64 = 4 << 20;
/// Estimate for a directory whose names have been counted, in bytes: memory for names that are gone again.
const OF_COUNTED: u64 = 256 << 10;
/// Estimate for each name that was counted, in bytes, besides its own length.
const OF_NAME: u64 = 192;
/// Factor between the size of a list's entry and the size of its name in a directory on the disk.
const FOR_EACH_BYTE: u64 = 8;
/// Estimate for a removed directory that an overlay lists, in bytes: its size isn't reported any more.
const OF_REMOVED: u64 = 64 << 20;

/// Locks and directory state found, as far as they matter.
#[derive(Debug, Default)]
pub(super) struct DescriptorFindings {
    /// Locks on files, POSIX locks and those of `flock`. One that several descriptors share counts for each.
    pub(super) locks: usize,
    /// Bytes for directories, at most.
    pub(super) directories: u64,
    /// Descriptors that were looked at.
    pub(super) descriptors: usize,
    /// True if there were too many to look at in time, or the lists behind them were too long.
    pub(super) is_unfinished: bool,
    /// True if there may be descriptors that are in no readable table.
    pub(super) has_unseen: bool,
    /// Memory for the names in directories of overlays, in bytes, by device and inode.
    pub(super) names: HashMap<(u32, u32, u64), u64>,
}

/// Scope of a look, and its precision.
pub(super) struct ScanScope<'a> {
    /// The ids of mounts of overlays that can be written.
    pub(super) overlays: &'a [u64],
    /// A process that hides its descriptors and is trusted.
    pub(super) runner: Option<i32>,
    /// Number of locks at which counting may stop.
    pub(super) most_locks: usize,
    /// True if the names in directories are counted. The time for it grows with the number of names.
    pub(super) counts_names: bool,
}

/// Contents of a `fdinfo` file of `/proc`.
#[derive(Debug, Default, PartialEq, Eq)]
struct FdInfo {
    flags: u32,
    mount: u64,
    locks: usize,
    in_flight: bool,
}

// === impl DescriptorFindings ===

impl DescriptorFindings {
    /// Looks at every descriptor of every process but PID 1.
    pub(super) fn look(scope: &ScanScope<'_>, pace: &mut ScanPace<'_>) -> Self {
        let mut held = Self::default();
        let Ok(processes) = numbers_in("/proc") else { return Self { has_unseen: true, ..held } };
        for process in processes.into_iter().filter(|process| *process != 1 && Some(*process) != scope.runner)
        {
            if held.is_enough(scope, pace) {
                break;
            }
            // One that is gone holds nothing, and its threads neither.
            held.has_unseen |= unless_gone(held.add_process(process, scope, pace)).is_err();
        }
        held
    }

    fn is_enough(&mut self, scope: &ScanScope<'_>, pace: &mut ScanPace<'_>) -> bool {
        self.is_unfinished |= !pace.goes_on();
        self.is_unfinished || self.locks > scope.most_locks
    }

    fn add_process(
        &mut self,
        process: i32,
        scope: &ScanScope<'_>,
        pace: &mut ScanPace<'_>,
    ) -> Result<(), Errno> {
        // Threads may have tables of their own.
        let mut tables: Vec<i32> = Vec::new();
        for thread in numbers_in(&format!("/proc/{process}/task"))? {
            let mut is_known = false;
            for table in &tables {
                if self.is_enough(scope, pace) {
                    return Ok(());
                }
                // Where either is gone, the table is another one, or counts twice.
                is_known |= unless_gone(share_descriptors(*table, thread))?.unwrap_or(false);
            }
            if !is_known {
                tables.push(thread);
                unless_gone(self.add_table(&format!("/proc/{process}/task/{thread}"), scope, pace))?;
            }
        }
        Ok(())
    }

    /// Looks at one descriptor after the other as they are listed: the list itself may be long.
    fn add_table(&mut self, path: &str, scope: &ScanScope<'_>, pace: &mut ScanPace<'_>) -> Result<(), Errno> {
        for descriptor in numbers(&format!("{path}/fd"))? {
            let descriptor = descriptor?;
            if self.is_enough(scope, pace) {
                break;
            }
            unless_gone(self.add(path, descriptor, scope, pace))?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: &str,
        descriptor: i32,
        scope: &ScanScope<'_>,
        pace: &mut ScanPace<'_>,
    ) -> Result<(), Errno> {
        self.descriptors += 1;
        let info = FdInfo::read(&format!("{path}/fdinfo/{descriptor}"), scope.most_locks)?;
        self.locks += info.locks;
        self.has_unseen |= info.in_flight;
        if info.may_be_read_as_directory() {
            let is_overlay = scope.overlays.contains(&info.mount);
            let path = format!("{path}/fd/{descriptor}");
            self.directories += self.of_directory(&path, is_overlay, scope.counts_names, pace)?;
        }
        Ok(())
    }

    /// Returns the estimated memory kept for a descriptor, if it is one of a directory.
    fn of_directory(
        &mut self,
        path: &str,
        is_overlay: bool,
        counts_names: bool,
        pace: &mut ScanPace<'_>,
    ) -> Result<u64, Errno> {
        // As it is known: no server is asked.
        let known = AtFlags::from_bits_retain(libc::AT_STATX_DONT_SYNC.cast_unsigned());
        let stat = statx(CWD, path, known, StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::INO)?;
        if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory {
            return Ok(0);
        }
        if !is_overlay {
            return Ok(OF_DIRECTORY);
        }
        if readlinkat(CWD, path, Vec::new())?.as_bytes().ends_with(b" (deleted)") {
            return Ok(OF_REMOVED);
        }
        let of_size = FOR_EACH_BYTE * stat.stx_size;
        if !counts_names {
            return Ok(OF_OVERLAY + of_size);
        }
        let directory = (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
        let of_names = match self.names.get(&directory) {
            Some(known) => *known,
            // One that can't be read may hold any names.
            None => of_names(path, pace).map_or(OF_OVERLAY, |bytes| OF_COUNTED + bytes),
        };
        self.names.insert(directory, of_names);
        Ok(of_size + of_names)
    }
}

/// `None` for a process, thread or descriptor that is gone.
fn unless_gone<T>(looked: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match looked {
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        looked => looked.map(Some),
    }
}

/// Returns the memory for the names of a directory in a list, for as many names as there is time for.
fn of_names(path: &str, pace: &mut ScanPace<'_>) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 8 << 10];
    let mut entries = RawDir::new(&directory, &mut buffer);
    let mut bytes = 0;
    while let Some(entry) = entries.next() {
        bytes += OF_NAME + 2 * entry?.file_name().count_bytes() as u64;
        if !pace.goes_on() {
            break;
        }
    }
    Ok(bytes)
}

/// The numbers in a directory of `/proc`, one after the other.
fn numbers(path: &str) -> Result<impl Iterator<Item = Result<i32, Errno>>, Errno> {
    let as_errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let entries = read_dir(path).map_err(as_errno)?;
    Ok(entries.filter_map(move |entry| match entry {
        Ok(entry) => entry.file_name().to_str()?.parse().ok().map(Ok),
        Err(error) => Some(Err(as_errno(error))),
    }))
}

// === impl FdInfo ===

impl FdInfo {
    fn read(path: &str, most_locks: usize) -> Result<Self, Errno> {
        let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (mut info, mut chunk, mut begun) = (Self::default(), [0; 4096], Vec::new());
        loop {
            let read = rustix::io::read(&file, &mut chunk)?;
            begun.extend_from_slice(&chunk[..read]);
            let end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let lines = begun.get(..end).unwrap_or_default();
            let goes_on = info.add_lines(&String::from_utf8_lossy(lines));
            if read == 0 || !goes_on || info.locks > most_locks {
                return Ok(info);
            }
            begun.drain(..end);
        }
    }

    /// Returns true if more of the wanted fields may stand in the lines that follow.
    fn add_lines(&mut self, lines: &str) -> bool {
        for line in lines.lines() {
            let Some((name, value)) = line.split_once(':') else { return false };
            match (name, value.trim()) {
                ("flags", value) => self.flags = u32::from_str_radix(value, 8).unwrap_or_default(),
                ("mnt_id", value) => self.mount = value.parse().unwrap_or_default(),
                ("lock", _) => self.locks += 1,
                ("scm_fds", value) => self.in_flight = value != "0",
                ("pos" | "ino", _) => {}
                // Fields of only some kinds of files, which may be long.
                _ => return false,
            }
        }
        true
    }

    fn may_be_read_as_directory(&self) -> bool {
        self.flags & (libc::O_ACCMODE | libc::O_PATH).cast_unsigned() == libc::O_RDONLY.cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    const READ_ONLY: &str = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t15\n";

    fn info(text: &str) -> FdInfo {
        let mut info = FdInfo::default();
        info.add_lines(text);
        info
    }

    #[test]
    fn descriptor_is_described_as_the_kernel_does() {
        let read = info(&format!("{READ_ONLY}lock:\t1: FLOCK  ADVISORY  WRITE 7 00:2d:1236 0 EOF\n"));
        assert_eq!((read.mount, read.locks, read.in_flight), (29, 1, false));
        assert!(read.may_be_read_as_directory());
        assert!(!info("flags:\t012100000\n").may_be_read_as_directory(), "O_PATH");
        assert!(!info("flags:\t02\n").may_be_read_as_directory(), "opened for writing");
        assert!(info("scm_fds: 2\n").in_flight);
        assert!(!info("scm_fds: 0\n").in_flight);
        let mut long = FdInfo::default();
        assert!(!long.add_lines("flags:\t02\ntfd:        5 events: 19 data: 5\nlock:\t1: FLOCK\n"));
        assert_eq!(long.locks, 0);
    }

    #[test]
    fn open_directories_and_locks_of_a_process_are_seen() {
        let folder = std::env::temp_dir().join(format!("belljar-descriptors-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_pid());
        let scope =
            |overlays, counts_names| ScanScope { overlays, runner: None, most_locks: 16, counts_names };
        let none = scope(&[], false);
        let (directory, path_only) = (
            File::open(&folder).unwrap(),
            openat(CWD, &folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap(),
        );
        let of = |file: &dyn std::os::fd::AsRawFd, scope: &ScanScope<'_>| {
            let mut held = DescriptorFindings::default();
            let mut others = || false;
            let mut pace = ScanPace::begin(Duration::MAX / 2, &mut others);
            held.add(&path, file.as_raw_fd(), scope, &mut pace).unwrap();
            held
        };
        assert_eq!(of(&directory, &none).directories, OF_DIRECTORY);
        assert_eq!(of(&path_only, &none).directories, 0);
        let stat = statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).unwrap();
        let mounts = [stat.stx_mnt_id];
        assert!(of(&directory, &scope(&mounts, false)).directories > OF_OVERLAY);
        assert_eq!(of(&directory, &none).locks, 0);
        rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockShared).unwrap();
        assert_eq!(of(&directory, &none).locks, 1);
        let few_names = of(&directory, &scope(&mounts, true)).directories;
        std::fs::write(folder.join("a-name"), "").unwrap();
        let with_one_more = of(&directory, &scope(&mounts, true)).directories;
        std::fs::remove_dir_all(&folder).unwrap();
        assert!((OF_COUNTED..OF_OVERLAY).contains(&few_names), "{few_names}");
        assert!(with_one_more >= few_names + OF_NAME, "{with_one_more}");
        assert_eq!(of(&directory, &scope(&mounts, true)).directories, OF_REMOVED);
    }

    #[test]
    fn interrupted_descriptor_scan_is_unfinished() {
        let scope = ScanScope { overlays: &[], runner: None, most_locks: 16, counts_names: false };
        let mut others = || false;
        assert!(
            DescriptorFindings::look(&scope, &mut ScanPace::begin(Duration::ZERO, &mut others)).is_unfinished
        );
    }
}
