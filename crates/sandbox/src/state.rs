//! State directory of the host: a folder for each run while it lasts, and the artifacts for good.
//!
//! ```text
//! <state>/runs/<run id>/private/      closed to all but the sandbox's user, whatever a program does to what is in it
//!                              /job          what the sandbox has as /job
//!                              /upper, /work the changes to a workspace that is a copy
//!                              /workspace    a copy of a workspace that a container works on
//!                      /reviews/      frozen states of a session's changes, the host's own
//!                      /lock          held as long as the run's owner lives
//!                      /kept          there if the folder is to stay
//!                      /copy.json     there if the run works on a copy whose changes must not be lost (`kept`)
//!         kept/<run id>/              the folder of a run that is over, with changes that a person decides on
//!         making                      locked while a run's folder is made (until its own lock exists) or removed
//!         artifacts/ab/abcdef…        kept files, by SHA-256
//!         control-groups              below which directories control groups were made, a line each
//! ```

mod trusted;

pub use trusted::UntrustedStateError;

use crate::kept::{self, RECORD, SettledRun};
use belljar_confine::plan::Identity;
use belljar_contract::id::RunId;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::{HostPath, HostPathError};
use belljar_files::lock_file::open_lock;
use belljar_trusted::in_use;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, chownat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The state directories that this process has found to be out of reach of other local users.
static CHECKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The state directory.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    path: PathBuf,
}

/// The folder of one run. It goes with the run unless it is kept.
#[derive(Debug)]
pub struct RunFolder {
    id: RunId,
    path: PathBuf,
    kept: bool,
    /// Locked. The kernel lets go of the lock when this process is gone, however it ended.
    lock: File,
}

/// The mark on a folder that must not be cleared away yet.
#[derive(Debug)]
pub struct RetentionMark {
    mark: PathBuf,
}

/// The folder, in that of a run, with everything that the run's sandbox can write. It belongs to the sandbox's user and no other user can
/// enter it, whatever permissions a program gives to the directories below.
const PRIVATE: &str = "private";

/// The job's part of its run's folder, which is at the same path in its sandbox.
pub(crate) const JOB: &str = "job";

/// Files that keep a folder from being cleared away as a leftover: a lock while its owner lives, a mark afterwards.
const LOCK: &str = "lock";
const KEPT: &str = "kept";

const MAKING: &str = "making";
const GROUPS: &str = "control-groups";

/// Why there is no place for a run.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A directory can't be made.
    #[error("can't make {}", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A directory can't be given to the sandbox's user.
    #[error("can't give {} to the sandbox's user", path.display())]
    Give {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: Errno,
    },
    /// A copy needs a place for its changes.
    #[error("there is no folder for the changes to a copy")]
    NoFolder,
    /// A directory that was made can't be found.
    #[error(transparent)]
    Lost(#[from] HostPathError),
    /// A directory that was made can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// A lock that is there only when it is held.
fn make_lock(folder: &Path) -> std::io::Result<File> {
    let unheld = folder.join(".lock");
    let lock = open_lock(&unheld)?;
    lock.try_lock()?;
    std::fs::rename(unheld, folder.join(LOCK))?;
    Ok(lock)
}

/// Returns true if an open file is the one at that path.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |one: Metadata, other: Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    file.metadata().is_ok_and(|one| path.metadata().is_ok_and(|other| same(one, other)))
}

fn making_in(state: &Path) -> std::io::Result<File> {
    open_lock(&state.join(MAKING))
}

/// Makes a directory that only this user can enter.
fn give_directory(path: &Path, owner: Identity) -> Result<(), StateError> {
    let make = |source| StateError::Make { path: path.to_owned(), source };
    DirBuilder::new().mode(0o700).create(path).map_err(make)?;
    let (uid, gid) = (Uid::from_raw(owner.host_uid), Gid::from_raw(owner.host_gid));
    if rustix::process::geteuid().is_root() {
        chownat(rustix::fs::CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|source| StateError::Give { path: path.to_owned(), source })?;
    }
    // The umask may have taken something away.
    Ok(Directory::open_host_itself(path)?.set_mode(0o700)?)
}

fn lost(path: &Path, error: &std::io::Error) -> DirectoryError {
    let source = Errno::from_io_error(error).unwrap_or(Errno::IO);
    DirectoryError { path: path.to_owned(), source }
}

// === impl StateDirectory ===

impl StateDirectory {
    /// Uses `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// An id for a new run.
    pub fn new_id() -> RunId {
        RunId::from_uuid(uuid::Uuid::now_v7())
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes this process use the state directory: the files that it obeys and lends are recorded there from then on.
    pub fn begin_use(&self) {
        in_use::begin(&self.path, |path| Self::at(path).create());
    }

    /// Makes the directory, if it is missing. Sandboxes of other users have their folders in it, so it can be passed
    /// through, whatever the umask; the directories in it are closed where they must be.
    ///
    /// # Errors
    /// [`UntrustedStateError`] as the source if another local user could replace what is in it; that of making it.
    pub fn create(&self) -> std::io::Result<()> {
        if self.path.is_dir() && self.is_checked() {
            return Ok(());
        }
        if trusted::create(&self.path)? {
            std::fs::set_permissions(&self.path, Permissions::from_mode(0o711))?;
        }
        self.note_checked();
        Ok(())
    }

    /// Checks that no other local user can replace the directory or what is in it. Nothing is made.
    ///
    /// # Errors
    /// [`UntrustedStateError`] as the source if one could.
    pub fn check(&self) -> std::io::Result<()> {
        if !self.is_checked() {
            trusted::check(&self.path)?;
            self.note_checked();
        }
        Ok(())
    }

    /// Returns true if this process has checked it. No other user could have replaced it since then.
    fn is_checked(&self) -> bool {
        CHECKED.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.path)
    }

    fn note_checked(&self) {
        if self.path.is_dir() {
            CHECKED.lock().unwrap_or_else(PoisonError::into_inner).insert(self.path.clone());
        }
    }

    /// Id of this deployment among others on the same host: twelve hexadecimal digits.
    pub fn deployment(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let path = path.canonicalize().unwrap_or(path);
        let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
        hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the directories below which control groups have been made.
    pub(crate) fn groups_at(&self) -> Vec<PathBuf> {
        let remembered = std::fs::read_to_string(self.path.join(GROUPS)).unwrap_or_default();
        remembered.lines().map(PathBuf::from).collect()
    }

    /// Remembers below which directories control groups are made from now on.
    pub(crate) fn remember_groups_at(&self, parents: &[&Path]) -> Result<(), StateError> {
        let known = self.groups_at();
        let path = self.path.join(GROUPS);
        let make = |source| StateError::Make { path: path.clone(), source };
        for parent in parents.iter().filter(|parent| !known.iter().any(|known| known == *parent)) {
            self.create().map_err(make)?;
            let mut file =
                OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(make)?;
            file.write_all(&[parent.as_os_str().as_encoded_bytes(), b"\n"].concat()).map_err(make)?;
        }
        Ok(())
    }

    /// Path of a run's folder, if there is one.
    pub fn run_folder(&self, id: &RunId) -> PathBuf {
        self.path.join("runs").join(id.as_str())
    }

    /// Path of everything of a run that its sandbox can write.
    pub fn private_folder(&self, id: &RunId) -> PathBuf {
        self.run_folder(id).join(PRIVATE)
    }

    /// Makes the folder of a new run, with `job` in it for the sandbox's user.
    ///
    /// # Errors
    /// [`StateError`] with the directory that can't be made.
    pub fn begin_run(&self, owner: Identity) -> Result<RunFolder, StateError> {
        // Leftovers of other runs are cleared away first. A failure of that doesn't keep the run from starting.
        let _ = self.reconcile();
        let id = Self::new_id();
        let path = self.run_folder(&id);
        let making = self.making().map_err(|source| StateError::Make { path: path.clone(), source })?;
        in_use::publish().map_err(|source| StateError::Make { path: self.path.clone(), source })?;
        making.lock_shared().map_err(|source| StateError::Make { path: path.clone(), source })?;
        std::fs::create_dir(&path).map_err(|source| StateError::Make { path: path.clone(), source })?;
        // The sandbox's user must get through to what is its own; other users can't look around.
        for closed in [path.parent().unwrap_or(&path), &path] {
            Directory::open_host_itself(closed)?.set_mode(0o711)?;
        }
        let lock = make_lock(&path).map_err(|source| StateError::Make { path: path.join(LOCK), source })?;
        drop(making);
        belljar_failpoint::reached("run.folder_made");
        let folder = RunFolder { id, path, kept: false, lock };
        give_directory(&folder.private(), owner)?;
        folder.make(JOB, owner)?;
        folder.make(&format!("{JOB}/artifacts"), owner)?;
        Ok(folder)
    }

    /// A file that a process has locked, along with others, while it makes or removes a run's folder.
    fn making(&self) -> std::io::Result<File> {
        self.create()?;
        std::fs::create_dir_all(self.path.join("runs"))?;
        making_in(&self.path)
    }

    /// Keeps the folder of a run from being cleared away when its owner is gone, until what comes back is dropped: it
    /// holds something that is not finished. The run's end removes it all the same.
    ///
    /// # Errors
    /// [`StateError`] when it can't be marked.
    pub fn retain(&self, id: &RunId) -> Result<RetentionMark, StateError> {
        let mark = self.run_folder(id).join(KEPT);
        File::create(&mark).map_err(|source| StateError::Make { path: mark.clone(), source })?;
        Ok(RetentionMark { mark })
    }

    /// The folder of a run whose owner is gone; it is the caller's now. Nothing when its owner lives.
    pub fn adopt(&self, id: &RunId) -> Option<RunFolder> {
        let path = self.run_folder(id);
        let lock = File::open(path.join(LOCK)).ok()?;
        lock.try_lock().ok()?;
        Some(RunFolder { id: id.clone(), path, kept: true, lock })
    }

    /// The folder of a run whose sandbox was destroyed just now: the last of its processes may still hold the lock for a moment.
    /// `None` if there is none, or a process holds it for longer.
    pub fn adopt_destroyed(&self, id: &RunId) -> Option<RunFolder> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        loop {
            match self.adopt(id) {
                None if self.run_folder(id).exists() && begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                adopted => return adopted,
            }
        }
    }

    /// Removes the folders of runs whose owner is gone, and returns their ids. A folder that is marked as kept stays, and
    /// changes to a copy become a kept change set.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first folder that can't be removed.
    pub fn reconcile(&self) -> Result<Vec<RunId>, DirectoryError> {
        let Ok(runs) = std::fs::read_dir(self.path.join("runs")) else { return Ok(Vec::new()) };
        // A folder without a lock is being made, unless no process is making any.
        let making = self.making().ok().filter(|making| making.try_lock().is_ok());
        let mut removed = Vec::new();
        for run in runs.flatten() {
            let name = run.file_name();
            let Some(id) = name.to_str().and_then(|name| RunId::parse(name).ok()) else { continue };
            let lock = match File::open(run.path().join(LOCK)) {
                // One that was opened may be gone since, and its folder with it.
                Ok(lock) if lock.try_lock().is_ok() && is_at(&lock, &run.path().join(LOCK)) => lock,
                // Its owner lives, or has just removed it.
                Ok(_) => continue,
                // It is being made, or was cleared away meanwhile.
                Err(_) if making.is_none() || !run.path().exists() => continue,
                Err(_) => match make_lock(&run.path()) {
                    Ok(lock) => lock,
                    // No sandbox has been in it, so it takes no room; where there is none for its lock, it stays for now.
                    Err(_) => continue,
                },
            };
            if !run.path().join(KEPT).exists() {
                let folder = RunFolder { id: id.clone(), path: run.path(), kept: true, lock };
                // Changes that can't be kept now stay for the next time.
                let Ok(SettledRun::Unchanged(folder)) = kept::settle(self, folder, true) else { continue };
                match making {
                    Some(_) => folder.remove_alone()?,
                    None => folder.remove()?,
                }
                removed.push(id);
            }
        }
        Ok(removed)
    }

    /// Returns true if the run has a live owner.
    pub fn is_owned(&self, id: &RunId) -> bool {
        // A lock that can't be looked at may have an owner.
        match File::open(self.run_folder(id).join(LOCK)) {
            Ok(lock) => lock.try_lock().is_err(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// The directory of the artifact store, made if missing.
    ///
    /// # Errors
    /// [`StateError`] when it can't be made.
    pub fn artifacts(&self) -> Result<Directory, StateError> {
        let path = self.path.join("artifacts");
        std::fs::create_dir_all(&path).map_err(|source| StateError::Make { path: path.clone(), source })?;
        let artifacts = Directory::open_host_itself(&path)?;
        artifacts.set_mode(0o700)?;
        Ok(artifacts)
    }
}

// === impl RetentionMark ===

impl Drop for RetentionMark {
    fn drop(&mut self) {
        // Gone with the whole folder if the run ended meanwhile.
        let _ = std::fs::remove_file(&self.mark);
    }
}

// === impl RunFolder ===

impl RunFolder {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lock. A process with a copy of this descriptor keeps the folder from being taken for a leftover, too.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// The folder with everything that the sandbox can write. Only the sandbox's user, and root, can enter it.
    pub fn private(&self) -> PathBuf {
        self.path.join(PRIVATE)
    }

    /// Makes a directory in [`Self::private`] for the sandbox's user.
    ///
    /// # Errors
    /// [`StateError`] when it can't be made or given away.
    pub fn make(&self, name: &str, owner: Identity) -> Result<HostPath, StateError> {
        let path = self.private().join(name);
        give_directory(&path, owner)?;
        Ok(HostPath::resolve(path)?)
    }

    /// Returns true if the folder stays when the run is over.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Keeps the folder when the run is over.
    ///
    /// # Errors
    /// [`StateError`] when it can't be marked as kept.
    pub fn keep(&mut self) -> Result<(), StateError> {
        let path = self.path.join(KEPT);
        File::create(&path).map_err(|source| StateError::Make { path, source })?;
        self.kept = true;
        Ok(())
    }

    /// Lets go of the folder without removing it: it is a leftover then.
    pub fn leave(mut self) {
        self.kept = true;
    }

    /// Moves the folder elsewhere, and returns the run's id and the lock, which is still held.
    pub(crate) fn move_to(mut self, to: &Path) -> std::io::Result<(RunId, File)> {
        let lock = self.lock.try_clone()?;
        self.kept = true;
        std::fs::rename(&self.path, to)?;
        Ok((self.id.clone(), lock))
    }

    /// Lets go of a folder whose sandbox is gone: removed, unless it holds a copy whose changes must not be lost.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first thing that can't be removed.
    pub fn end(mut self) -> Result<(), DirectoryError> {
        self.kept = true;
        if self.holds_copy() { Ok(()) } else { self.remove_now() }
    }

    fn holds_copy(&self) -> bool {
        self.path.join(RECORD).exists()
    }

    /// Removes the folder and everything in it.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first thing that can't be removed.
    pub fn remove(mut self) -> Result<(), DirectoryError> {
        self.kept = true;
        self.remove_now()
    }

    /// Its lock goes with all that is in it. Until it is gone as a whole, no other process may take it for a leftover.
    fn remove_now(&self) -> Result<(), DirectoryError> {
        let making = self.path.ancestors().nth(2).map(making_in);
        let making = making.transpose().map_err(|error| lost(&self.path, &error))?;
        if let Some(making) = &making {
            making.lock_shared().map_err(|error| lost(&self.path, &error))?;
        }
        self.remove_alone()
    }

    /// Removes the folder, for a caller that is alone with all folders.
    fn remove_alone(&self) -> Result<(), DirectoryError> {
        Directory::open_host(&self.path)?.clear()?;
        std::fs::remove_dir(&self.path).map_err(|error| lost(&self.path, &error))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.kept && !self.holds_copy() {
            // A leftover is found by its name; here is no caller that could get the error.
            let _ = self.remove_now();
        }
    }
}

#[cfg(test)]
mod tests;
