//! Disk usage of a sandbox that is in no directory: files without a name that its processes hold open, and the total that
//! they have written.
//!
//! PID 1 is ours, and holds nothing. Processes that may not be looked at are reported as such; a process that has ended
//! holds nothing.

use super::TreeUsage;
use belljar_confine::listing::numbers_in;
use belljar_confine::sealed::InitHandle;
pub(super) use belljar_trusted::processes::descendants;
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories inside that lie on the host's disk.
const ON_DISK: [&str; 2] = ["/workspace", "/job"];

/// Prefix of the name of a socket.
const SOCKET: &[u8] = b"socket:";

/// Suffix of the name of a file that is gone.
const GONE: &str = " (deleted)";

/// Files that the processes of a sandbox hold.
#[derive(Default)]
pub(super) struct HeldFiles {
    counted: HashSet<(u64, u64)>,
    bytes: u64,
    is_partial: bool,
    /// True if a local socket holds descriptors that were sent and not received.
    pub(super) has_some_in_flight: bool,
}

/// Measures the files that have no name any more.
pub(super) fn deleted(sandbox: &InitHandle) -> TreeUsage {
    HeldFiles::of(sandbox).measured()
}

/// Returns the bytes that its processes have written to disks since they began. Processes that are over are included if
/// another has reaped them. It is a lower bound: a process whose parent ignores `SIGCHLD` is counted with none.
pub(super) fn written(sandbox: &InitHandle) -> u64 {
    let of_one = |pid: i32| {
        let told = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
    };
    // A process that is over is counted with the process that reaped it; in the end that is PID 1.
    let all = descendants(sandbox.pid()).into_iter().chain([sandbox.pid()]);
    let bytes = all.map(of_one).fold(0, u64::saturating_add);
    if sandbox.has_ended() { 0 } else { bytes }
}

// === impl HeldFiles ===

impl HeldFiles {
    /// Looks at every process of a sandbox.
    pub(super) fn of(sandbox: &InitHandle) -> Self {
        let mut held = Self::default();
        for pid in descendants(sandbox.pid()) {
            held.look_at(pid);
        }
        // If the sandbox is gone, the process ids may belong to other processes by now.
        if sandbox.has_ended() { Self::default() } else { held }
    }

    /// Returns the disk usage of the files that have no name any more.
    pub(super) fn measured(&self) -> TreeUsage {
        TreeUsage { bytes: self.bytes, is_whole: !self.is_partial }
    }

    fn look_at(&mut self, pid: i32) {
        let done = self.descriptors(pid).and_then(|()| self.mappings(pid));
        self.is_partial |= done.is_err_and(|error| !is_gone(&error));
    }

    /// Looks at the descriptors of each thread: each may have a table of its own.
    fn descriptors(&mut self, pid: i32) -> io::Result<()> {
        for thread in numbers_in(&format!("/proc/{pid}/task"))? {
            let thread = PathBuf::from(format!("/proc/{pid}/task/{thread}"));
            // A directory that was removed is held by standing in it as well.
            for place in ["cwd", "root"] {
                self.look_at_file(&thread.join(place));
            }
            let descriptors = match fs::read_dir(thread.join("fd")) {
                Err(error) if is_gone(&error) => continue,
                descriptors => descriptors?,
            };
            for descriptor in descriptors {
                let Ok(descriptor) = descriptor else { continue };
                self.look_at_file(&descriptor.path());
            }
        }
        Ok(())
    }

    /// `path` is that of a link below `/proc` to what a process holds.
    fn look_at_file(&mut self, path: &Path) {
        let target = match fs::read_link(path) {
            Ok(target) => Some(target),
            // The kernel reports no path that is longer than a page. The file can be looked at all the same.
            Err(error) if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => None,
            Err(error) => {
                self.is_partial |= !is_gone(&error);
                return;
            }
        };
        // Path as the process sees it; files in memory have a limit of their own.
        if target.as_ref().map_or_else(|| !is_in_memory(path), |target| is_on_disk(target)) {
            match fs::metadata(path) {
                Ok(found) => self.count(&found),
                Err(error) => self.is_partial |= !is_gone(&error),
            }
        }
        let is_socket = target.is_some_and(|target| target.as_os_str().as_bytes().starts_with(SOCKET));
        if is_socket && !self.has_some_in_flight {
            self.has_some_in_flight = has_some_in_flight(path);
        }
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

/// Returns true if descriptors wait in a socket to be received; those in connections that wait to be accepted count with
/// the listening socket. `path` is that of the socket below `fd`.
fn has_some_in_flight(path: &Path) -> bool {
    let (Some(number), Some(task)) = (path.file_name(), path.parent().and_then(Path::parent)) else {
        return false;
    };
    let told = fs::read_to_string(task.join("fdinfo").join(number)).unwrap_or_default();
    let count = told.lines().find_map(|line| line.strip_prefix("scm_fds:")?.trim().parse::<u64>().ok());
    count.is_some_and(|count| count > 0)
}

/// Returns true if the target of a link is on a file system in memory.
fn is_in_memory(path: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS_MAGIC))
}

fn is_on_disk(target: &Path) -> bool {
    ON_DISK.iter().any(|place| target.starts_with(place))
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd, AsRawFd};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
    use std::io::Write;

    #[test]
    fn removed_file_counts_where_its_path_is_longer_than_the_kernel_tells() {
        let folder = tempfile::tempdir().unwrap();
        let held_at = |levels: usize| {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            let mut place = openat(CWD, folder.path(), flags, Mode::empty()).unwrap();
            for _ in 0..levels {
                let name = "d".repeat(250);
                // Those of the round before are there.
                let _ = mkdirat(&place, &name, Mode::RWXU);
                place = openat(&place, &name, flags, Mode::empty()).unwrap();
            }
            let file = openat(&place, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
            unlinkat(&place, "file", AtFlags::empty()).unwrap();
            let mut file = fs::File::from(file);
            file.write_all(&vec![1; 1 << 20]).unwrap();
            let mut held = HeldFiles::default();
            held.descriptors(rustix::process::getpid().as_raw_pid()).unwrap();
            (held.bytes, is_in_memory(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))))
        };
        let (bytes, is_in_memory) = held_at(18);
        assert!(bytes >= 1 << 20 || is_in_memory, "{bytes}");
        // The control: this one is found, and isn't among what a sandbox has.
        assert_eq!(held_at(1).0, 0);
    }

    #[test]
    fn descriptors_in_flight_show_until_they_are_received() {
        let (ours, theirs) = belljar_confine::message::pair().unwrap();
        let path = format!("/proc/self/task/{}/fd/{}", rustix::thread::gettid(), theirs.as_raw_fd());
        assert!(!has_some_in_flight(Path::new(&path)));
        belljar_confine::message::send(ours.as_fd(), &[1], &[ours.as_fd()]).unwrap();
        assert!(has_some_in_flight(Path::new(&path)));
        drop(belljar_confine::message::receive(theirs.as_fd()).unwrap());
        assert!(!has_some_in_flight(Path::new(&path)));
    }
}
