//! What the descriptors of a sandbox's programs have the kernel keep and charge to no control group: locks on files, and the
//! state of directories that are being read.
//!
//! A file system keeps some 10 KiB for each descriptor by which a directory is read. An overlay keeps a list of all names in
//! it, and another one for each descriptor, if names were added in between. Nothing tells how large these are, so they are
//! estimated, and rather too high. Whether a directory was read isn't told either, so every open one counts.
//!
//! Not everything can be seen: descriptors in flight over local sockets are in no table, and a process that is not dumpable
//! hides its own.

use crate::kernel::processes::share_descriptors;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, openat, readlinkat, statx};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs::read_dir;
use std::time::Duration;

/// For a directory that the file system itself lists.
const OF_DIRECTORY: u64 = 16 << 10;
/// For one that an overlay lists: as much as names take that it doesn't tell of, those of the layer below.
const OF_OVERLAY: u64 = 4 << 20;
/// An entry of a list takes up to so many times as much as its name in a directory on the disk.
const FOR_EACH_BYTE: u64 = 8;
/// For one that an overlay lists and that is removed: its size isn't told any more.
const OF_REMOVED: u64 = 64 << 20;

/// What there is, as far as matters.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Locks on files, POSIX locks and those of `flock`. One that several descriptors share counts for each.
    pub(super) locks: usize,
    /// Bytes for directories, at most.
    pub(super) directories: u64,
    /// Descriptors that were looked at.
    pub(super) descriptors: usize,
    /// Whether there were too many to look at in time, or too long lists behind them.
    pub(super) is_unfinished: bool,
    /// Whether there may be descriptors in no table that can be read.
    pub(super) has_unseen: bool,
}

/// Where to look.
pub(super) struct Places<'a> {
    /// The ids of mounts of overlays that can be written.
    pub(super) overlays: &'a [u64],
    /// A process that hides its descriptors and is trusted.
    pub(super) runner: Option<i32>,
}

/// When to stop.
pub(super) struct Enough {
    pub(super) locks: usize,
    /// Processor time of this thread: on a busy machine a look takes longer, and sees as much.
    pub(super) until: Duration,
}

/// What a `fdinfo` file of `/proc` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Info {
    flags: u32,
    mount: u64,
    locks: usize,
    in_flight: bool,
}

// === impl Held ===

impl Held {
    /// Looks at every descriptor of every process but PID 1.
    pub(super) fn look(places: &Places<'_>, enough: &Enough) -> Self {
        let mut held = Self::default();
        let Ok(processes) = numbers("/proc") else { return Self { has_unseen: true, ..held } };
        for process in
            processes.into_iter().filter(|process| *process != 1 && Some(*process) != places.runner)
        {
            if held.is_enough(enough) {
                break;
            }
            match held.add_process(process, places, enough) {
                // One that is gone holds nothing.
                Ok(()) | Err(Errno::NOENT | Errno::SRCH) => {}
                Err(_) => held.has_unseen = true,
            }
        }
        held
    }

    fn is_enough(&mut self, enough: &Enough) -> bool {
        const BETWEEN_TIMES: usize = 8;
        if self.descriptors.is_multiple_of(BETWEEN_TIMES) {
            self.is_unfinished |= processor_time() >= enough.until;
        }
        self.is_unfinished || self.locks > enough.locks
    }

    fn add_process(&mut self, process: i32, places: &Places<'_>, enough: &Enough) -> Result<(), Errno> {
        // Threads may have tables of their own.
        let mut tables: Vec<i32> = Vec::new();
        for thread in numbers(&format!("/proc/{process}/task"))? {
            let mut is_known = false;
            for table in &tables {
                is_known |= share_descriptors(*table, thread)?;
            }
            if !is_known {
                tables.push(thread);
                self.add_table(&format!("/proc/{process}/task/{thread}"), places, enough)?;
            }
        }
        Ok(())
    }

    fn add_table(&mut self, path: &str, places: &Places<'_>, enough: &Enough) -> Result<(), Errno> {
        for descriptor in numbers(&format!("{path}/fd"))? {
            if self.is_enough(enough) {
                break;
            }
            match self.add(path, descriptor, places, enough) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: &str,
        descriptor: i32,
        places: &Places<'_>,
        enough: &Enough,
    ) -> Result<(), Errno> {
        self.descriptors += 1;
        let info = Info::read(&format!("{path}/fdinfo/{descriptor}"), enough.locks)?;
        self.locks += info.locks;
        self.has_unseen |= info.in_flight;
        if info.may_be_read_as_directory() {
            self.directories += of_directory(&format!("{path}/fd/{descriptor}"), info.mount, places)?;
        }
        Ok(())
    }
}

/// What is kept for a descriptor, if it is one of a directory.
fn of_directory(path: &str, mount: u64, places: &Places<'_>) -> Result<u64, Errno> {
    // As it is known: no server is asked.
    let known = AtFlags::from_bits_retain(libc::AT_STATX_DONT_SYNC.cast_unsigned());
    let stat = statx(CWD, path, known, StatxFlags::TYPE | StatxFlags::SIZE)?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory {
        return Ok(0);
    }
    if !places.overlays.contains(&mount) {
        return Ok(OF_DIRECTORY);
    }
    let is_removed = readlinkat(CWD, path, Vec::new())?.as_bytes().ends_with(b" (deleted)");
    Ok(if is_removed { OF_REMOVED } else { OF_OVERLAY + FOR_EACH_BYTE * stat.stx_size })
}

/// What this thread has used.
pub(super) fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or_default())
}

/// The numbers in a directory of `/proc`.
fn numbers(path: &str) -> Result<Vec<i32>, Errno> {
    let as_errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut found = Vec::new();
    for entry in read_dir(path).map_err(as_errno)? {
        let name = entry.map_err(as_errno)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

// === impl Info ===

impl Info {
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

    /// Whether what is wanted may stand in the lines that follow.
    fn add_lines(&mut self, lines: &str) -> bool {
        for line in lines.lines() {
            let Some((name, value)) = line.split_once(':') else { return false };
            match (name, value.trim()) {
                ("flags", value) => self.flags = u32::from_str_radix(value, 8).unwrap_or_default(),
                ("mnt_id", value) => self.mount = value.parse().unwrap_or_default(),
                ("lock", _) => self.locks += 1,
                ("scm_fds", value) => self.in_flight = value != "0",
                ("pos" | "ino", _) => {}
                // What only some kinds of files tell, and may be long.
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

    const READ_ONLY: &str = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t15\n";

    fn info(text: &str) -> Info {
        let mut info = Info::default();
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
        let mut long = Info::default();
        assert!(!long.add_lines("flags:\t02\ntfd:        5 events: 19 data: 5\nlock:\t1: FLOCK\n"));
        assert_eq!(long.locks, 0);
    }

    #[test]
    fn open_directories_and_locks_of_a_process_are_seen() {
        let folder = std::env::temp_dir();
        let path = format!("/proc/self/task/{}", rustix::thread::gettid().as_raw_pid());
        let enough = Enough { locks: 16, until: Duration::MAX };
        let none = Places { overlays: &[], runner: None };
        let (directory, path_only) = (
            File::open(&folder).unwrap(),
            openat(CWD, &folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap(),
        );
        let of = |file: &dyn std::os::fd::AsRawFd, places: &Places<'_>| {
            let mut held = Held::default();
            held.add(&path, file.as_raw_fd(), places, &enough).unwrap();
            held
        };
        assert_eq!(of(&directory, &none).directories, OF_DIRECTORY);
        assert_eq!(of(&path_only, &none).directories, 0);
        let stat = statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).unwrap();
        let overlaid = Places { overlays: &[stat.stx_mnt_id], runner: None };
        assert!(of(&directory, &overlaid).directories > OF_OVERLAY);
        assert_eq!(of(&directory, &none).locks, 0);
        rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockShared).unwrap();
        assert_eq!(of(&directory, &none).locks, 1);
    }
}
