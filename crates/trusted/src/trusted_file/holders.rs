//! Processes of sandboxes that have a file open, or a directory on the way to it.
//!
//! A file that was opened in a workspace stays open when it is moved out of it, and can still be written: a file by any
//! descriptor, which `/proc/self/fd` turns into one for writing, and a directory by its descriptor or as a working
//! directory. So the sandboxes' processes are looked through. None can act in between if none has run meanwhile; where some
//! run all the time, the look is repeated.

use super::error::UntrustedFileError;
use crate::in_use::{FileIdentity, InUseEntry};
use crate::mounts::Location;
use crate::processes::descendants;
use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxFlags, statvfs, statx};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of passes over processes that run all the time. A process that passes a descriptor on to another at the
/// right moment is missed in that pass.
const MOST_TURNS: u32 = 8;

const PAUSE: Duration = Duration::from_millis(5);

/// Something on the way to a file, and the file.
pub(super) struct PathElement {
    pub(super) identity: FileIdentity,
    /// Its location; `None` if that can't be determined.
    pub(super) location: Option<Location>,
    pub(super) at: PathBuf,
}

/// Refuses a file if a process of those sandboxes has something open that leads to it.
pub(super) fn check<'e>(
    path: &Path,
    passed: &[PathElement],
    sandboxes: impl Iterator<Item = &'e InUseEntry>,
) -> Result<(), UntrustedFileError> {
    let mut looked_at = Vec::new();
    for entry in sandboxes {
        // Another process than its holder launches no sandbox of it.
        let Some(holder) = entry.holder.map(|holder| holder.process) else { continue };
        if looked_at.contains(&holder) {
            continue;
        }
        looked_at.push(holder);
        match HolderSearch::of(holder, passed).find() {
            Ok(None) => {}
            Ok(Some(OpenDescriptor { process, at })) => {
                let (path, workspace) = (path.to_owned(), entry.path.clone());
                return Err(UntrustedFileError::Held { path, at: at.to_owned(), process, workspace });
            }
            Err(why) => return Err(UntrustedFileError::unknown(path, entry, why)),
        }
    }
    Ok(())
}

struct OpenDescriptor<'p> {
    process: i32,
    at: &'p Path,
}

/// Number of times each thread was scheduled on a processor, by its process and its number.
type ThreadSchedule = BTreeMap<(i32, String), ThreadRuns>;

#[derive(PartialEq, Eq)]
struct ThreadRuns {
    runs: bool,
    switches: u64,
}

struct HolderSearch<'p> {
    passed: &'p [PathElement],
    /// The process that launches the sandbox.
    holder: i32,
    /// Number of seccomp filters of this process. A process of its sandbox has more.
    filters: Option<u64>,
    mount_namespace: Option<PathBuf>,
}

/// Below the directory of a process or of a thread.
const MOUNT_NAMESPACE: &str = "ns/mnt";

const IN_FLIGHT: &str =
    "one of its processes has sent descriptors through a local socket, and they are still unreceived";
const HIDDEN: &str = "the open files of its processes can't be read";

// === impl HolderSearch ===

impl<'p> HolderSearch<'p> {
    fn of(holder: u32, passed: &'p [PathElement]) -> Self {
        let holder = i32::try_from(holder).unwrap_or_default();
        let mount_namespace = fs::read_link(format!("/proc/{holder}/{MOUNT_NAMESPACE}")).ok();
        Self {
            passed,
            holder,
            filters: ProcessStatus::read(holder).and_then(|status| status.filters),
            mount_namespace,
        }
    }

    fn find(self) -> Result<Option<OpenDescriptor<'p>>, &'static str> {
        let mut unknown = None;
        for turn in 0..MOST_TURNS {
            let before = self.moment();
            let mut is_known = true;
            let mut processes: Vec<i32> = before.keys().map(|(process, _)| *process).collect();
            processes.dedup();
            for process in processes {
                let why = match self.look_through(process) {
                    Ok(None) => continue,
                    Ok(Some(SearchResult::Passed(at))) => return Ok(Some(OpenDescriptor { process, at })),
                    Err(error) if is_gone(&error) => continue,
                    Ok(Some(SearchResult::InFlight)) => IN_FLIGHT,
                    Err(_) if self.is_begun_by_us(process) => continue,
                    Err(_) => HIDDEN,
                };
                is_known = false;
                unknown = Some(why);
            }
            if is_known && before.values().all(|thread| !thread.runs) && self.moment() == before {
                return Ok(None);
            }
            if !is_known {
                // A program that is just being started is hidden for a moment.
                std::thread::sleep(PAUSE * turn);
            }
        }
        unknown.map_or(Ok(None), Err)
    }

    /// The threads of the sandbox's processes.
    fn moment(&self) -> ThreadSchedule {
        let mut moment = ThreadSchedule::new();
        let is_of_sandbox = |process: &i32| match ProcessStatus::read(*process) {
            Some(ProcessStatus { filters, is_first, .. }) => {
                !is_first && (filters.is_none() || filters > self.filters)
            }
            None => false,
        };
        for process in descendants(self.holder).into_iter().filter(is_of_sandbox) {
            for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
                let number = thread.file_name().to_string_lossy().into_owned();
                if let Some(found) = ThreadRuns::read(&thread.path()) {
                    moment.insert((process, number), found);
                }
            }
        }
        moment
    }

    /// Returns true if a process is a fork of our own that is about to become the first process of a sandbox and has not
    /// executed a program yet. It is our own, and can't be looked at. A program has one more filter.
    fn is_begun_by_us(&self, process: i32) -> bool {
        let Some(ProcessStatus { filters: Some(own), parent, .. }) = ProcessStatus::read(process) else {
            return false;
        };
        let first = ProcessStatus::read(parent).filter(|status| status.is_first);
        first.and_then(|first| first.filters).is_some_and(|of_first| own <= of_first)
    }

    /// Looks at each thread: it may have descriptors and a working directory of its own, and outlive the first one.
    fn look_through(&self, process: i32) -> io::Result<Option<SearchResult<'p>>> {
        let mut is_mapped_seen = false;
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let thread = thread?.path();
            match self.look_through_thread(&thread) {
                Ok(None) => {}
                Err(error) if is_gone(&error) => {}
                found => return found,
            }
            // They share their memory.
            if !is_mapped_seen {
                let mappings = match fs::read_to_string(thread.join("maps")) {
                    Err(error) if is_gone(&error) => continue,
                    mappings => mappings?,
                };
                is_mapped_seen = !mappings.is_empty();
                if let Some(at) = self.mapped(&mappings) {
                    return Ok(Some(SearchResult::Passed(at)));
                }
            }
        }
        Ok(None)
    }

    fn look_through_thread(&self, thread: &Path) -> io::Result<Option<SearchResult<'p>>> {
        let namespace = fs::read_link(thread.join(MOUNT_NAMESPACE))?;
        // Where it sees the host's own mounts, paths are what it is held to, and it can write by what it has open for writing alone.
        let is_apart = Some(&namespace) != self.mount_namespace.as_ref();
        for link in ["cwd", "root", "exe"].iter().filter(|_| is_apart) {
            match self.passed_at(&thread.join(link)) {
                // Some have no program.
                Ok(None) | Err(Errno::NOENT | Errno::SRCH) => {}
                Ok(Some(at)) => return Ok(Some(SearchResult::Passed(at))),
                Err(errno) => return Err(errno.into()),
            }
        }
        for descriptor in fs::read_dir(thread.join("fdinfo"))? {
            let descriptor = descriptor?;
            let about = match fs::read_to_string(descriptor.path()) {
                // Closed meanwhile.
                Err(error) if is_gone(&error) => continue,
                about => DescriptorInfo::parse(&about?).ok_or(io::ErrorKind::InvalidData)?,
            };
            if about.has_some_in_flight {
                return Ok(Some(SearchResult::InFlight));
            }
            let found = match self.passed_at(&thread.join("fd").join(descriptor.file_name())) {
                // It has closed itself to others of its user, as runners and agents for keys do.
                Err(Errno::ACCESS | Errno::PERM) => {
                    self.passed_as(|passed| passed.identity.inode() == about.inode)
                }
                Err(Errno::NOENT | Errno::SRCH) => None,
                found => found?,
            };
            if let Some(at) = found.filter(|_| is_apart || about.is_for_writing) {
                return Ok(Some(SearchResult::Passed(at)));
            }
        }
        Ok(None)
    }

    /// Returns the passed file that a link of `/proc` leads to, through a mount by which it can be written.
    fn passed_at(&self, link: &Path) -> Result<Option<&'p Path>, Errno> {
        let identity = FileIdentity::of_statx(&statx(CWD, link, AtFlags::NO_AUTOMOUNT, StatxFlags::INO)?);
        match self.passed_as(|passed| passed.identity == identity) {
            Some(at) => Ok(Some(at).filter(|_| !is_read_only(link))),
            None => Ok(None),
        }
    }

    fn passed_as(&self, is_it: impl Fn(&PathElement) -> bool) -> Option<&'p Path> {
        self.passed.iter().find(|passed| is_it(passed)).map(|passed| passed.at.as_path())
    }

    /// Returns the passed file that is mapped so that writes reach the file. `mappings` holds the kernel's own numbers of
    /// file systems.
    fn mapped(&self, mappings: &str) -> Option<&'p Path> {
        mappings.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (rights, device, inode) = (words.next()?, words.nth(1)?, words.next()?);
            let (device, inode) = (decimal(device)?, inode.parse::<u64>().ok()?);
            if !rights.ends_with('s') {
                return None;
            }
            let is_on = |location: &Location| location.file_system == device.as_bytes();
            self.passed_as(|passed| {
                passed.identity.inode() == inode && passed.location.as_ref().is_none_or(is_on)
            })
        })
    }
}

enum SearchResult<'p> {
    Passed(&'p Path),
    InFlight,
}

/// Status of a process.
struct ProcessStatus {
    /// Number of its seccomp filters. Where the kernel doesn't count them, every process is looked at.
    filters: Option<u64>,
    /// True if it is the first process of a sandbox, which is our own and has nothing of the workspace open.
    is_first: bool,
    parent: i32,
}

// === impl ProcessStatus ===

impl ProcessStatus {
    /// Returns `None` if the process is gone.
    fn read(process: i32) -> Option<Self> {
        let told = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let filters = line("Seccomp_filters:").and_then(|count| count.parse().ok());
        // As each of the namespaces numbers it, the innermost last.
        let mut numbers = line("NSpid:")?.split_whitespace();
        let is_first = numbers.next() != Some("1") && numbers.next_back() == Some("1");
        Some(Self { filters, is_first, parent: line("PPid:")?.parse().ok()? })
    }
}

/// Files that a process has open, as `fdinfo` lists them, also for a process whose descriptors can't be followed.
struct DescriptorInfo {
    inode: u64,
    is_for_writing: bool,
    /// True if it is a socket in which other descriptors wait to be received. Those in connections that wait to be accepted
    /// count with the listening socket.
    has_some_in_flight: bool,
}

// === impl DescriptorInfo ===

impl DescriptorInfo {
    fn parse(about: &str) -> Option<Self> {
        /// `O_ACCMODE`
        const ACCESS: u32 = 0o3;
        let line = |name: &str| about.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let flags = u32::from_str_radix(line("flags:")?, 8).ok()?;
        Some(Self {
            inode: line("ino:")?.parse().ok()?,
            is_for_writing: flags & ACCESS != 0,
            has_some_in_flight: line("scm_fds:").is_some_and(|count| count != "0"),
        })
    }
}

// === impl ThreadRuns ===

impl ThreadRuns {
    fn read(path: &Path) -> Option<Self> {
        let told = fs::read_to_string(path.join("status")).ok()?;
        let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let number = |name: &str| line(name)?.parse::<u64>().ok();
        let switches = number("voluntary_ctxt_switches:")? + number("nonvoluntary_ctxt_switches:")?;
        Some(Self { runs: line("State:")?.starts_with('R'), switches })
    }
}

/// Returns true if the mount that a link of `/proc` leads to is read-only.
fn is_read_only(link: &Path) -> bool {
    statvfs(link).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Converts the numbers of a device from hexadecimal to decimal digits.
fn decimal(device: &str) -> Option<String> {
    let (major, minor) = device.split_once(':')?;
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    Some(format!("{}:{}", number(major)?, number(minor)?))
}

/// Returns true if a thread has ended or is about to end: then it has nothing open any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}
