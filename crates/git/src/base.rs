//! The host's own clone of a repository: bare, outside of every sandbox. A sandbox's work is committed on top of it.
//!
//! It shares no file with the sandbox's workspace: writing to a hard-linked file would change both.

use super::runner::{Git, GitError};
use crate::clone::CloneParams;
use belljar_contract::id::RunId;
use belljar_egress::git::PinnedRemote;
use belljar_files::directory::Directory;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The host's own clone.
#[derive(Debug)]
pub struct HostClone {
    folder: PathBuf,
    record: BaseRecord,
}

/// Metadata of the clone. It is written by the host only; nothing in it comes from a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecord {
    /// The remote, in canonical form.
    pub remote: String,
    /// The requested branch, tag or commit.
    pub reference: String,
    /// The commit that it resolved to.
    pub commit: String,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// The run that it was fetched for; null for a clone of an operator.
    pub run_id: Option<RunId>,
    /// The agent that worked on it, if known.
    pub agent: Option<String>,
    /// The model that the agent used.
    pub model: Option<String>,
    /// The directory that it was laid out in.
    directory: Option<CheckoutDirectory>,
    /// Its path in the workspace of a session, if it is a session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_directory: Option<String>,
}

/// A directory, and the inode by which it is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckoutDirectory {
    /// Its path, as bytes.
    path: Vec<u8>,
    device: u64,
    inode: u64,
}

/// Reasons why there is no clone.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// Git has failed.
    #[error("can't clone the repository")]
    Git(#[from] GitError),
    /// A file of the clone can't be written or read.
    #[error("can't keep {}", path.display())]
    Keep {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The session has the maximum number of clones.
    #[error("{} clones are kept for this session already: of {}", kept.len(), kept.join(", "))]
    NoRoom {
        /// The directories that they were cloned into.
        kept: Vec<String>,
    },
    /// The directory was not cloned by Belljar.
    #[error("{} is no clone of belljar's", name.display())]
    NotCloned {
        /// The directory.
        name: PathBuf,
    },
}

/// Names of the repository and of its metadata, in the clone's folder.
const REPOSITORY: &str = "repository.git";
pub(super) const RECORD: &str = "base.json";

/// Name of a run's clone in the run's folder.
const OF_RUN: &str = "git";

/// Reference of the fetched commit.
pub(super) const REFERENCE: &str = "refs/belljar/base";

// === impl HostClone ===

impl HostClone {
    /// Name of the folder with operators' clones, in a state directory.
    pub(super) const OF_PEOPLE: &str = "git";

    /// Returns the folder of a run's clone.
    pub fn folder_in_run(folder: &Path) -> PathBuf {
        folder.join(OF_RUN)
    }

    /// Returns a new folder for an operator's clone.
    pub fn folder_in_state(state: &Path) -> PathBuf {
        state.join(Self::OF_PEOPLE).join(uuid::Uuid::now_v7().to_string())
    }

    /// Fetches a clone into a new folder.
    pub(super) fn fetch(pinned: &PinnedRemote, cloning: &CloneParams<'_>) -> Result<Self, BaseError> {
        let CloneParams { origin, folder, depth, run_id, env, is_canceled, .. } = *cloning;
        let reference = origin.reference();
        // Only the host's user may enter the folder, even if others can pass through its parents.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(keep(folder))?;
        let repository = folder.join(REPOSITORY);
        let init = Git::in_directory(folder, env, is_canceled);
        init.run(&["init", "--quiet", "--bare", "--template=", "--object-format=sha1", REPOSITORY])?;
        let git = Git::bare(&repository, env, is_canceled);
        let url = pinned.remote().to_string();
        let wanted = format!("+{reference}:{REFERENCE}");
        let depth = depth.map(|depth| format!("--depth={depth}"));
        let arguments = ["fetch"].into_iter().chain(depth.as_deref()).chain([
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--",
            &url,
            &wanted,
        ]);
        git.reach(pinned, &arguments.collect::<Vec<_>>())?;
        let commit = git.run(&["rev-parse", "--verify", "--quiet", &format!("{REFERENCE}^{{commit}}")])?;
        let commit = object_id(&commit).ok_or(GitError::Unreadable { step: "rev-parse".to_owned() })?;
        git.run(&["update-ref", REFERENCE, &commit])?;
        let record = BaseRecord {
            remote: url,
            reference: reference.to_owned(),
            commit,
            fetched_at: Timestamp::now(),
            run_id: run_id.cloned(),
            agent: None,
            model: None,
            directory: None,
            workspace_directory: None,
        };
        let base = Self { folder: folder.to_owned(), record };
        base.keep()?;
        Ok(base)
    }

    /// Records the directory that it was laid out in.
    ///
    /// # Errors
    /// [`BaseError`] when there is no such directory, or it can't be recorded.
    pub fn laid_out_at(&mut self, directory: &Path) -> Result<(), BaseError> {
        self.record.directory = Some(CheckoutDirectory::of(directory).map_err(keep(directory))?);
        self.keep()
    }

    /// Records the agent that works on it, and its model.
    ///
    /// # Errors
    /// [`BaseError`] when that can't be recorded.
    pub fn worked_on_by(&mut self, agent: &str, model: &str) -> Result<(), BaseError> {
        self.record.agent = Some(agent.to_owned());
        self.record.model = Some(model.to_owned());
        self.keep()
    }

    /// Opens the clone in that folder.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn open(folder: &Path) -> Result<Self, BaseError> {
        let path = folder.join(RECORD);
        let bytes = std::fs::read(&path).map_err(keep(&path))?;
        let record = serde_json::from_slice(&bytes).map_err(|error| keep(&path)(error.into()))?;
        Ok(Self { folder: folder.to_owned(), record })
    }

    /// Finds the clone that was laid out in a directory. The directory's content isn't consulted.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn of_directory(state: &Path, directory: &Path) -> Result<Self, BaseError> {
        let not_cloned = || BaseError::NotCloned { name: directory.to_owned() };
        let wanted = CheckoutDirectory::of(directory).map_err(|_| not_cloned())?;
        let of_people = folders(&state.join(Self::OF_PEOPLE));
        let of_runs = ["runs", "kept"].into_iter().flat_map(|area| folders(&state.join(area)));
        let of_runs = of_runs.map(|run| Self::folder_in_run(&run));
        let mut all = of_people.into_iter().chain(of_runs).filter_map(|folder| Self::open(&folder).ok());
        all.find(|base| base.record.directory.as_ref() == Some(&wanted)).ok_or_else(not_cloned)
    }

    /// Returns its metadata.
    pub fn record(&self) -> &BaseRecord {
        &self.record
    }

    /// Returns the directory that it was laid out in, if any.
    pub fn directory(&self) -> Option<PathBuf> {
        self.laid_out().map(CheckoutDirectory::path)
    }

    /// Opens the directory that it was laid out in, with its path; `None` if it was laid out in none. Another directory that
    /// has taken its path isn't opened, such as one that a sandbox has linked in its place.
    ///
    /// # Errors
    /// [`BaseError::NotCloned`] when another directory is there, or none.
    pub fn open_directory(&self) -> Result<Option<(PathBuf, Directory)>, BaseError> {
        let Some(laid_out) = self.laid_out() else { return Ok(None) };
        let path = laid_out.path();
        let opened = Directory::open_host(&path).ok().filter(|opened| laid_out.is(opened));
        match opened {
            Some(opened) => Ok(Some((path, opened))),
            None => Err(BaseError::NotCloned { name: path }),
        }
    }

    pub(super) fn laid_out(&self) -> Option<&CheckoutDirectory> {
        self.record.directory.as_ref()
    }

    /// Returns its folder, in which pushes are noted.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join(REPOSITORY)
    }

    /// Returns true if the clone is shallow.
    pub(super) fn is_shallow(&self) -> bool {
        self.repository().join("shallow").exists()
    }

    /// Records its path in the workspace of a session.
    pub(super) fn is_in_workspace_at(&mut self, directory: &str) -> Result<(), BaseError> {
        self.record.workspace_directory = Some(directory.to_owned());
        self.keep()
    }

    fn keep(&self) -> Result<(), BaseError> {
        write_durably(&self.folder, RECORD, &self.record).map_err(keep(&self.folder))
    }
}

// === impl CheckoutDirectory ===

impl CheckoutDirectory {
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.path.clone()))
    }

    /// Returns the device number of its file system.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    fn is(&self, opened: &Directory) -> bool {
        opened.stat_itself().is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.device, self.inode))
    }

    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let path = directory.canonicalize()?;
        let metadata = path.metadata()?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        Ok(Self { path: path.as_os_str().as_bytes().to_owned(), device, inode })
    }
}

/// Writes a document atomically and durably: after a crash either version is there as a whole.
pub(super) fn write_durably(folder: &Path, name: &str, what: &impl Serialize) -> io::Result<()> {
    let partial = folder.join(format!("{name}.new"));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec_pretty(what)?)?;
    file.sync_all()?;
    std::fs::rename(&partial, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Parses an object id that is alone on its line.
pub(super) fn object_id(said: &[u8]) -> Option<String> {
    let text = str::from_utf8(said).ok()?.trim_end_matches('\n');
    is_object_id(text).then(|| text.to_owned())
}

pub(super) fn is_object_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

pub(super) fn folders(above: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(above).map(|all| all.flatten().map(|one| one.path()).collect()).unwrap_or_default()
}

pub(super) fn keep(path: &Path) -> impl FnOnce(io::Error) -> BaseError {
    let path = path.to_owned();
    move |source| BaseError::Keep { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn checkout_replaced_by_another_directory_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir(at("app")).unwrap();
        std::fs::create_dir(at("private")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let record = BaseRecord {
            remote: String::new(),
            reference: String::new(),
            commit: String::new(),
            fetched_at: Timestamp::UNIX_EPOCH,
            run_id: None,
            agent: None,
            model: None,
            directory: None,
            workspace_directory: None,
        };
        let mut base = HostClone { folder: at("folder"), record };
        assert!(base.open_directory().unwrap().is_none());
        base.laid_out_at(&at("app")).unwrap();
        // Control.
        base.open_directory().unwrap().unwrap();
        // A sandbox that may write the parent has put a link to another directory there, or the directory itself.
        std::fs::rename(at("app"), at("aside")).unwrap();
        symlink(at("private"), at("app")).unwrap();
        assert!(matches!(base.open_directory(), Err(BaseError::NotCloned { .. })));
        std::fs::remove_file(at("app")).unwrap();
        std::fs::rename(at("private"), at("app")).unwrap();
        assert!(matches!(base.open_directory(), Err(BaseError::NotCloned { .. })));
    }
}
