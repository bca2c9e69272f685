//! The host's own clone of a repository: bare, outside of every sandbox, and what a sandbox's work is laid on again.
//!
//! It shares no file with what a sandbox gets: whoever may write a file that is linked from two places writes both.

use super::environment::HostEnv;
use super::runner::{Git, GitError};
use belljar_contract::id::RunId;
use belljar_egress::git::Pinned;
use belljar_sandbox::directory::Directory;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Such a clone.
#[derive(Debug)]
pub struct Base {
    folder: PathBuf,
    record: BaseRecord,
}

/// What is known of it. It is the host's, and nothing that a sandbox has said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecord {
    /// From where it is, in its one form.
    pub remote: String,
    /// The branch, tag or commit that was asked for.
    pub reference: String,
    /// What that was.
    pub commit: String,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// The run that it was fetched for; null where a person has asked.
    pub run_id: Option<RunId>,
    /// Which agent worked on it, if that is known.
    pub agent: Option<String>,
    /// With which model.
    pub model: Option<String>,
    /// Where it was laid out.
    directory: Option<LaidOut>,
    /// Where it is in the workspace of a session, if it is in one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_directory: Option<String>,
}

/// A directory, and by what one tells that it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaidOut {
    /// Its path, as bytes.
    path: Vec<u8>,
    device: u64,
    inode: u64,
}

/// Why there is no such clone.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// Git can't do its part.
    #[error("can't clone the repository")]
    Git(#[from] GitError),
    /// It can't be kept or read.
    #[error("can't keep {}", path.display())]
    Keep {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A session has as many as are kept for one.
    #[error("{} clones are kept for this session already: of {}", kept.len(), kept.join(", "))]
    NoRoom {
        /// The directories that they were cloned into.
        kept: Vec<String>,
    },
    /// Belljar has cloned nothing there.
    #[error("{} is no clone of belljar's", name.display())]
    NotCloned {
        /// What was named.
        name: PathBuf,
    },
}

/// What the repository is called in its folder, and what is known of it.
const REPOSITORY: &str = "repository.git";
pub(super) const RECORD: &str = "base.json";

/// Where that of a run is in its folder.
const OF_RUN: &str = "git";

/// The commit that was fetched.
pub(super) const REFERENCE: &str = "refs/belljar/base";

// === impl Base ===

impl Base {
    /// Where those of people are in a state directory.
    pub(super) const OF_PEOPLE: &str = "git";

    /// Where the clone of a run is.
    pub fn folder_in_run(folder: &Path) -> PathBuf {
        folder.join(OF_RUN)
    }

    /// A place for one of a person's.
    pub fn folder_in_state(state: &Path) -> PathBuf {
        state.join(Self::OF_PEOPLE).join(uuid::Uuid::now_v7().to_string())
    }

    /// Fetches one into a folder, which isn't there yet.
    pub(super) fn fetch(
        folder: &Path,
        (pinned, (reference, depth), run_id): (&Pinned, (&str, Option<u32>), Option<&RunId>),
        env: &HostEnv,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Self, BaseError> {
        // Nobody but the host gets through, however its path is let through for others.
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

    /// Notes where it was laid out.
    ///
    /// # Errors
    /// [`BaseError`] when there is no such directory, or it can't be noted.
    pub fn laid_out_at(&mut self, directory: &Path) -> Result<(), BaseError> {
        self.record.directory = Some(LaidOut::of(directory).map_err(keep(directory))?);
        self.keep()
    }

    /// Notes who works on it.
    ///
    /// # Errors
    /// [`BaseError`] when that can't be kept.
    pub fn worked_on_by(&mut self, agent: &str, model: &str) -> Result<(), BaseError> {
        self.record.agent = Some(agent.to_owned());
        self.record.model = Some(model.to_owned());
        self.keep()
    }

    /// The one in that folder.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn open(folder: &Path) -> Result<Self, BaseError> {
        let path = folder.join(RECORD);
        let bytes = std::fs::read(&path).map_err(keep(&path))?;
        let record = serde_json::from_slice(&bytes).map_err(|error| keep(&path)(error.into()))?;
        Ok(Self { folder: folder.to_owned(), record })
    }

    /// The one that was laid out in a directory. What the directory says of itself isn't asked.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn of_directory(state: &Path, directory: &Path) -> Result<Self, BaseError> {
        let not_cloned = || BaseError::NotCloned { name: directory.to_owned() };
        let wanted = LaidOut::of(directory).map_err(|_| not_cloned())?;
        let of_people = folders(&state.join(Self::OF_PEOPLE));
        let of_runs = ["runs", "kept"].into_iter().flat_map(|area| folders(&state.join(area)));
        let of_runs = of_runs.map(|run| Self::folder_in_run(&run));
        let mut all = of_people.into_iter().chain(of_runs).filter_map(|folder| Self::open(&folder).ok());
        all.find(|base| base.record.directory.as_ref() == Some(&wanted)).ok_or_else(not_cloned)
    }

    /// What is known of it.
    pub fn record(&self) -> &BaseRecord {
        &self.record
    }

    /// Where it was laid out, if it was.
    pub fn directory(&self) -> Option<PathBuf> {
        self.laid_out().map(LaidOut::path)
    }

    /// Opens the directory that it was laid out in, with its path; `None` if it was laid out in none. Nothing else that has come to
    /// the path is opened, such as a link that a sandbox exchanges with the directory.
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

    pub(super) fn laid_out(&self) -> Option<&LaidOut> {
        self.record.directory.as_ref()
    }

    /// Its folder, in which what is under way is noted.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join(REPOSITORY)
    }

    /// Whether its history ends somewhere.
    pub(super) fn is_shallow(&self) -> bool {
        self.repository().join("shallow").exists()
    }

    /// Notes where it is in the workspace of a session.
    pub(super) fn is_in_workspace_at(&mut self, directory: &str) -> Result<(), BaseError> {
        self.record.workspace_directory = Some(directory.to_owned());
        self.keep()
    }

    fn keep(&self) -> Result<(), BaseError> {
        write_durably(&self.folder, RECORD, &self.record).map_err(keep(&self.folder))
    }
}

// === impl LaidOut ===

impl LaidOut {
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.path.clone()))
    }

    /// That of the file system that it is on.
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

/// Writes a document so that it is there, whole, whenever this process or this machine dies.
pub(super) fn write_durably(folder: &Path, name: &str, what: &impl Serialize) -> io::Result<()> {
    let partial = folder.join(format!("{name}.new"));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(&serde_json::to_vec_pretty(what)?)?;
    file.sync_all()?;
    std::fs::rename(&partial, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// The name of an object, alone on its line.
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
    fn directory_is_opened_only_while_it_is_the_one_that_was_laid_out() {
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
        let mut base = Base { folder: at("folder"), record };
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
