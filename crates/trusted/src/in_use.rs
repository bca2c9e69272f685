//! Registry of the files and directories that the processes of one state directory use at the moment: the files that the
//! host obeys, and the directories that sandboxes write directly. Each is identified by its device and inode.
//!
//! Each process that uses something has a file with the list in `<state>/in-use/`, locked for as long as the process lives. A file
//! that no process has locked is a leftover, and is removed by the next process that looks.

use crate::written_directories;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, Stat, Statx, fstat, makedev, openat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A file or directory, by its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

/// Kind of use of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UseKind {
    /// The host obeys the file, or follows the link on the way to one.
    Obeyed,
    /// The host would obey the file that is missing: this is the deepest directory that there is on the way.
    Missing {
        /// The way to the file from that directory.
        below: PathBuf,
    },
    /// The host obeys everything below the directory.
    ObeyedBelow,
    /// A sandbox writes the directory directly.
    Writable,
}

/// Something that is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InUseEntry {
    /// Kind of use.
    pub used: UseKind,
    /// Which file or directory.
    pub identity: FileIdentity,
    /// Path, for people to read.
    pub path: PathBuf,
    /// Which process holds it open, if one does.
    #[serde(default)]
    pub holder: Option<DirectoryHolder>,
    /// Mounts below it that are read-only for the sandbox.
    #[serde(default)]
    pub read_only: Vec<FileIdentity>,
}

/// The descriptor by which a process holds a directory for as long as its sandbox may write it. It leads there even if the
/// directory is moved, or another takes its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryHolder {
    /// The process that launches the sandbox.
    pub process: u32,
    descriptor: i32,
}

const FOLDER: &str = "in-use";

/// The state directory of this process, set by the first call of [`begin`].
static STATE: OnceLock<StateDirectory> = OnceLock::new();

struct StateDirectory {
    path: PathBuf,
    create: CreateDirectory,
}

/// Makes a state directory if it is missing.
pub type CreateDirectory = fn(&Path) -> io::Result<()>;

/// The entries that this process has registered, and the lists with them, which stay locked until the process ends.
static HELD: Mutex<RegisteredEntries> = Mutex::new(RegisteredEntries {
    entries: Vec::new(),
    written: 0,
    locked: Vec::new(),
    directories: Vec::new(),
});

struct RegisteredEntries {
    entries: Vec<InUseEntry>,
    /// Number of entries that are already in a list.
    written: usize,
    locked: Vec<File>,
    /// Directories that sandboxes of this process write, each with its descriptor.
    directories: Vec<(InUseEntry, OwnedFd)>,
}

/// Sets the state directory that this process works with, and the function that makes it. The first call counts.
pub fn begin(path: &Path, create: CreateDirectory) {
    let _ = STATE.set(StateDirectory { path: path.to_owned(), create });
}

/// Registers what this process uses from now on, until it ends. Nothing happens before [`begin`].
///
/// # Errors
/// The system's, when the list can't be written.
pub fn register(entries: &[InUseEntry]) -> io::Result<()> {
    let Some(state) = STATE.get() else { return Ok(()) };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let new: Vec<InUseEntry> =
        entries.iter().filter(|entry| !held.entries.contains(entry)).cloned().collect();
    let lends = new.iter().any(|entry| entry.used == UseKind::Writable);
    held.entries.extend(new.iter().cloned());
    // Without a state directory no sandbox of it lives; the process that makes one publishes the list first.
    if lends || state.path.exists() {
        write_list(&mut held, state)?;
    }
    match lends {
        true => written_directories::remember(&state.path, &new),
        false => Ok(()),
    }
}

/// Publishes what this process has registered. To be called before it makes something in a state directory, which may be new.
///
/// # Errors
/// The system's, when the list can't be written.
pub fn publish() -> io::Result<()> {
    let Some(state) = STATE.get() else { return Ok(()) };
    write_list(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner), state)
}

fn write_list(held: &mut RegisteredEntries, state: &StateDirectory) -> io::Result<()> {
    let new = held.entries.get(held.written..).unwrap_or_default();
    if new.is_empty() {
        return Ok(());
    }
    let folder = state.path.join(FOLDER);
    (state.create)(&state.path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let name = uuid::Uuid::new_v4().to_string();
    // Under its own name it is there only with its lock and its content.
    let unheld = folder.join(format!(".{name}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unheld)?;
    file.try_lock()?;
    file.write_all(&serde_json::to_vec(new)?)?;
    std::fs::rename(&unheld, folder.join(name))?;
    held.locked.push(file);
    held.written = held.entries.len();
    Ok(())
}

/// Returns everything that live processes use with this state directory, this process included.
pub fn all() -> Vec<InUseEntry> {
    let Some(state) = STATE.get() else { return Vec::new() };
    let mut all = all_in(&state.path.join(FOLDER));
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(held.entries.get(held.written..).unwrap_or_default().iter().cloned());
    all
}

/// Returns the files and directories that the host obeys at the moment, or would obey if they existed.
pub fn obeyed() -> Vec<InUseEntry> {
    all().into_iter().filter(|entry| entry.used != UseKind::Writable).collect()
}

/// The state directory of this process, if it works with one.
pub(crate) fn state_directory() -> Option<PathBuf> {
    STATE.get().map(|state| state.path.clone())
}

/// Returns the directories that sandboxes write directly at the moment.
pub fn writable() -> Vec<InUseEntry> {
    all().into_iter().filter(|entry| entry.used == UseKind::Writable).collect()
}

fn all_in(folder: &Path) -> Vec<InUseEntry> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for file in files.flatten().filter(|file| !file.file_name().as_encoded_bytes().starts_with(b".")) {
        let Ok(list) = File::open(file.path()) else { continue };
        if list.try_lock().is_ok() {
            let _ = std::fs::remove_file(file.path());
            continue;
        }
        // Written by a process of the same user; what can't be read is ignored.
        all.extend(
            serde_json::from_reader::<_, Vec<InUseEntry>>(io::BufReader::new(list)).unwrap_or_default(),
        );
    }
    all
}

// === impl InUseEntry ===

impl InUseEntry {
    /// Something that no process holds open.
    pub(crate) fn of(used: UseKind, stat: &Stat, path: PathBuf) -> Self {
        Self { used, identity: FileIdentity::of(stat), path, holder: None, read_only: Vec::new() }
    }

    /// Registers a directory that a sandbox of this process writes from now on. It is held open until this process ends.
    ///
    /// # Errors
    /// The system's, when it can't be looked at, or when there is no descriptor left.
    pub(crate) fn written(
        opened: BorrowedFd<'_>,
        path: PathBuf,
        read_only: Vec<FileIdentity>,
    ) -> Result<Self, Errno> {
        let new = Self { read_only, ..Self::of(UseKind::Writable, &fstat(opened)?, path) };
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&Self| Self { holder: None, ..(*known).clone() } == new;
        if let Some(known) = held.directories.iter().map(|(entry, _)| entry).find(is_it) {
            return Ok(known.clone());
        }
        let kept = fcntl_dupfd_cloexec(opened, 0)?;
        let holder = DirectoryHolder { process: std::process::id(), descriptor: kept.as_raw_fd() };
        let entry = Self { holder: Some(holder), ..new };
        held.directories.push((entry.clone(), kept));
        Ok(entry)
    }

    /// Opens it: by its holder's descriptor, else by its path if that still leads there.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        let held = self
            .holder
            .map(|holder| PathBuf::from(format!("/proc/{}/fd/{}", holder.process, holder.descriptor)));
        held.iter().chain([&self.path]).find_map(|path| {
            let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
            // The number of a process may be another's by now.
            fstat(&opened).is_ok_and(|stat| FileIdentity::of(&stat) == self.identity).then_some(opened)
        })
    }
}

// === impl FileIdentity ===

impl FileIdentity {
    /// The identity of what was looked at.
    pub fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    /// The identity of what was looked at the other way.
    pub(crate) fn of_statx(found: &Statx) -> Self {
        Self { device: makedev(found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino }
    }

    /// Inode number in its file system.
    pub(crate) fn inode(self) -> u64 {
        self.inode
    }

    /// Returns true if both are on one file system.
    pub fn shares_device_with(self, other: Self) -> bool {
        self.device == other.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_use_list_is_valid_while_its_process_holds_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let identity = FileIdentity { device: 1, inode: 2 };
        let entry = InUseEntry {
            used: UseKind::Obeyed,
            identity,
            path: "/a".into(),
            holder: None,
            read_only: Vec::new(),
        };
        let path = place.path().join("list");
        let file = File::create(&path).unwrap();
        file.try_lock().unwrap();
        std::fs::write(&path, serde_json::to_vec(&[&entry]).unwrap()).unwrap();
        assert_eq!(all_in(place.path()), [entry]);
        drop(file);
        assert_eq!(all_in(place.path()), []);
        assert!(!path.exists(), "a leftover is removed");
        assert_eq!(all_in(&place.path().join("none")), []);
    }
}
