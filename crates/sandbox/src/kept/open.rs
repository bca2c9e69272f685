//! Kept change sets: found by name or id, read, applied and removed.

use super::record::{CopyRecord, RECORD};
use super::settle::{ChangeSetSummary, at, write_summary};
use super::{SUMMARY, garbage};
use crate::state::StateDirectory;
use crate::workspace::apply::ApplyError;
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::diff;
use crate::workspace::digest::ReviewDigest;
use crate::workspace::drift::SourceDrift;
use crate::workspace::partial::{Application, ApplyOptions, ApplyOutcome};
use belljar_contract::id::RunId;
use belljar_contract::result::WorkspaceChanges;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::lock_file::open_lock;
use belljar_policy::untrusted::Untrusted;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A kept change set. No other process applies or removes it as long as this lives.
#[derive(Debug)]
pub struct KeptChangeSet {
    id: RunId,
    path: PathBuf,
    record: CopyRecord,
    summary: ChangeSetSummary,
    _lock: File,
}

/// A kept change set in a list. It may be gone by now.
#[derive(Debug)]
pub struct ListedChangeSet {
    /// Id of the change set, which is that of its run.
    pub id: RunId,
    /// Folder of the change set.
    pub path: PathBuf,
    /// The record of its copy.
    pub record: CopyRecord,
    /// Summary of the change set.
    pub summary: ChangeSetSummary,
}

/// The changes of a kept change set, with the directories that they are in. They are frozen: no sandbox works there any more.
/// This is what a review shows, and what a digest is made of.
#[derive(Debug)]
pub struct FrozenChangeSet {
    /// The changes.
    pub set: ChangeSet,
    /// The directory that was copied, as it is now.
    pub source: Directory,
    /// The layer or copy that holds the changes.
    pub layer: Directory,
    /// The tree that the run began with, if it is apart from the source.
    pub base: Option<Directory>,
    /// Changes that others have made in the source since the copy was made.
    pub drift: SourceDrift,
}

/// Why a kept change set can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// No change set has that name or id.
    #[error("there are no kept changes {name}")]
    NoSuch {
        /// The name or id.
        name: String,
    },
    /// Several change sets have that name.
    #[error("{name} names several kept change sets: {}", ids.join(", "))]
    Ambiguous {
        /// The name, or the beginning of an id.
        name: String,
        /// Their ids, with their names.
        ids: Vec<String>,
    },
    /// Another process works on the change set.
    #[error("kept changes {id} are in use by another process")]
    Busy {
        /// Id of the change set.
        id: RunId,
    },
    /// The directory that was copied is gone, or another one has its name now.
    #[error("the source directory {} no longer exists", path.display())]
    SourceGone {
        /// The directory.
        path: PathBuf,
        /// Why it can't be opened.
        #[source]
        source: DirectoryError,
    },
    /// The changes are laid out as a tree in the folder, and are no change set any more.
    #[error("the changes are laid out in {}", path.display())]
    LaidOut {
        /// The directory.
        path: PathBuf,
    },
    /// A directory can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The changes can't be determined.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// The changes can't be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A file of the store can't be read or written.
    #[error("can't use {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The name of the lock in a folder.
const LOCK: &str = "lock";

/// Returns all kept change sets, oldest first. One that can't be read is left out.
pub fn list(state: &StateDirectory) -> Vec<ListedChangeSet> {
    let folders = std::fs::read_dir(state.kept()).into_iter().flatten().flatten();
    let mut listed: Vec<ListedChangeSet> =
        folders.filter_map(|folder| ListedChangeSet::read(&folder.path())).collect();
    listed.sort_by(|one, other| (one.summary.kept_at, &one.id).cmp(&(other.summary.kept_at, &other.id)));
    listed
}

/// The folders that hold changes and can't be listed, because their record is damaged or they could not be kept (on a full disk). Nothing
/// removes them implicitly.
pub fn stranded(state: &StateDirectory) -> Vec<PathBuf> {
    let below =
        |area: PathBuf| std::fs::read_dir(area).into_iter().flatten().flatten().map(|entry| entry.path());
    let id_of = |path: &Path| RunId::parse(path.file_name()?.to_str()?).ok();
    let kept =
        below(state.kept()).filter(|path| id_of(path).is_some() && ListedChangeSet::read(path).is_none());
    let left = below(state.path().join("runs"))
        .filter(|path| path.join(RECORD).exists() && id_of(path).is_some_and(|id| !state.is_owned(&id)));
    // One that was removed or kept meanwhile is not among them.
    let mut stranded: Vec<PathBuf> = kept.chain(left).filter(|path| path.join(RECORD).exists()).collect();
    stranded.sort();
    stranded
}

/// The kept change set with that id, or of that name, or whose id begins so. A whole id prevails over a name.
///
/// # Errors
/// [`KeptError`] when there is none, several have the name or an id that begins so, or another process works on it.
pub fn find(state: &StateDirectory, name: &str) -> Result<KeptChangeSet, KeptError> {
    let all = list(state);
    let is_id = |listed: &&ListedChangeSet| listed.id.as_str() == name;
    let is_meant = |listed: &&ListedChangeSet| {
        let begins_so = !name.is_empty() && listed.id.as_str().starts_with(name);
        begins_so || listed.record.label.name.as_deref() == Some(name)
    };
    let mut found: Vec<&ListedChangeSet> = all.iter().filter(is_id).collect();
    if found.is_empty() {
        found = all.iter().filter(is_meant).collect();
    }
    match found[..] {
        [] => Err(KeptError::NoSuch { name: name.to_owned() }),
        [one] => KeptChangeSet::open(&one.path)?.ok_or_else(|| KeptError::NoSuch { name: name.to_owned() }),
        _ => {
            let ids = found.iter().map(|listed| match &listed.record.label.name {
                Some(label) => format!("{} (named {})", listed.id, Untrusted(label)),
                None => listed.id.to_string(),
            });
            let ids = ids.collect();
            Err(KeptError::Ambiguous { name: name.to_owned(), ids })
        }
    }
}

// === impl ListedChangeSet ===

impl ListedChangeSet {
    fn read(folder: &Path) -> Option<Self> {
        let id = RunId::parse(folder.file_name()?.to_str()?).ok()?;
        let record = CopyRecord::read(folder).ok()??;
        let summary = serde_json::from_slice(&std::fs::read(folder.join(SUMMARY)).ok()?).ok()?;
        Some(Self { id, path: folder.to_owned(), record, summary })
    }
}

// === impl KeptChangeSet ===

impl KeptChangeSet {
    pub(super) fn of(
        id: RunId,
        path: PathBuf,
        lock: File,
        (record, summary): (CopyRecord, ChangeSetSummary),
    ) -> Self {
        Self { id, path, record, summary, _lock: lock }
    }

    /// Opens the one in a folder; `None` if it is gone.
    ///
    /// # Errors
    /// [`KeptError::Busy`] when another process works on it.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, KeptError> {
        let lock = match open_lock(&folder.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(folder)(error)),
        };
        let Some(ListedChangeSet { id, path, record, summary }) = ListedChangeSet::read(folder) else {
            return Ok(None);
        };
        match lock.try_lock() {
            Ok(()) if folder.join(SUMMARY).exists() => Ok(Some(Self::of(id, path, lock, (record, summary)))),
            Ok(()) => Ok(None),
            Err(_) => Err(KeptError::Busy { id }),
        }
    }

    /// Returns the id, which is that of its run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The record of its copy.
    pub fn record(&self) -> &CopyRecord {
        &self.record
    }

    /// Returns the summary of the change set.
    pub fn summary(&self) -> &ChangeSetSummary {
        &self.summary
    }

    /// Returns true if the changes are laid out in the run's own source, as a whole tree.
    pub fn is_laid_out(&self) -> bool {
        self.summary.is_laid_out
    }

    /// Returns true if the run's own source is a clone that the host has made, so that the changes can be pushed.
    pub fn has_clone(&self) -> bool {
        self.path.join("git").is_dir()
    }

    /// The run's own source, if it has one.
    pub fn own_source(&self) -> Option<PathBuf> {
        self.record.own_source().map(|source| self.path.join(source))
    }

    /// Reads the changes.
    ///
    /// # Errors
    /// [`KeptError`] when the changes can't be determined, or the source is gone.
    pub fn changes(&self) -> Result<FrozenChangeSet, KeptError> {
        if self.summary.is_laid_out {
            return Err(KeptError::LaidOut { path: self.own_source().unwrap_or_else(|| self.path.clone()) });
        }
        self.record.remember_obeyed().map_err(at(&self.path))?;
        let folder = Directory::open_host(&self.path)?;
        let layer = self.record.open_layer(&folder)?;
        let source = self.record.open_source(&folder).map_err(|source| match self.record.source_path() {
            Some(path) => KeptError::SourceGone { path: path.to_owned(), source },
            None => source.into(),
        })?;
        let base = self.record.open_base(&folder)?;
        let set = self.record.read_changes(base.as_ref().unwrap_or(&source), &layer)?;
        let drift = match self.record.source_path() {
            Some(_) => SourceDrift::find_beside(&source, &self.record.baseline, Some(&layer))?,
            None => SourceDrift::default(),
        };
        Ok(FrozenChangeSet { set, source, layer, base, drift })
    }

    /// Applies changes of [`Self::changes`]: `set` may be a part of them. Afterwards they are settled, and what is left is
    /// what conflicts, and what was not in `set`.
    ///
    /// # Errors
    /// [`KeptError`]; what was written up to then is found to be so the next time.
    pub fn apply(
        &mut self,
        frozen: &FrozenChangeSet,
        set: &ChangeSet,
        wishes: &ApplyOptions,
    ) -> Result<ApplyOutcome, KeptError> {
        let scratch = self.path.join("merged");
        remove_tree(&scratch).map_err(at(&scratch))?;
        std::fs::create_dir(&scratch).map_err(at(&scratch))?;
        let opened = Directory::open_host(&scratch)?;
        let application = Application {
            set,
            copy: &frozen.layer,
            target: &frozen.source,
            base: frozen.base.as_ref(),
            scratch: &opened,
        };
        let prepared = application.prepare(wishes, &mut self.record.baseline)?;
        // If this process is killed on the way, the record shows what it has written.
        self.record.write(&self.path).map_err(at(&self.path))?;
        belljar_failpoint::reached("kept.apply_noted");
        let applied = prepared.write(&mut self.record.baseline)?;
        belljar_failpoint::reached("kept.applied");
        drop(opened);
        // It goes with the folder at the latest; what an error leaves goes with the next attempt.
        let _ = remove_tree(&scratch);
        self.record.settle(applied.written.iter().chain(&applied.merged).chain(&applied.marked));
        self.record.write(&self.path).map_err(at(&self.path))?;
        belljar_failpoint::reached("kept.apply_recorded");
        Ok(applied)
    }

    /// Writes all changes into the run's own source, which no person works in. It is the whole tree then.
    ///
    /// # Errors
    /// [`KeptError`], also if the source is a person's.
    pub fn lay_out(&mut self) -> Result<PathBuf, KeptError> {
        let Some(source) = self.own_source() else {
            let path = self.record.source_path().unwrap_or(&self.path).to_owned();
            return Err(KeptError::LaidOut { path });
        };
        if self.summary.is_laid_out {
            return Ok(source);
        }
        let frozen = self.changes()?;
        let rendered = frozen.render()?;
        // Nothing else writes there, so nothing conflicts, whatever the times of the files are.
        let since = SystemTime::now() + Duration::from_secs(86_400);
        let trust = belljar_policy::handoff::ApprovedPaths::in_all();
        crate::workspace::apply::apply(&frozen.set, &frozen.layer, &frozen.source, since, &trust)?;
        let bytes = serde_json::to_vec(&rendered).map_err(io::Error::from);
        let written = bytes.and_then(|bytes| super::record::write_whole(&self.path, RENDERED, &bytes));
        written.map_err(at(&self.path))?;
        self.summary.is_laid_out = true;
        write_summary(&self.path, &self.summary)?;
        Ok(source)
    }

    /// Renders the changes for people. Changes that are laid out are shown as they were.
    ///
    /// # Errors
    /// [`KeptError`] when they can't be determined.
    pub fn render(&self) -> Result<WorkspaceChanges, KeptError> {
        if !self.summary.is_laid_out {
            return self.changes()?.render();
        }
        let path = self.path.join(RENDERED);
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        read.map_err(at(&path))
    }

    /// Removes it, with all that is kept of its run.
    ///
    /// # Errors
    /// [`KeptError`] for what can't be removed; it is no kept change set any more, and the rest goes when others are collected.
    pub fn remove(self) -> Result<(), KeptError> {
        garbage::remove(&self.path).map_err(at(&self.path))
    }
}

/// The changes as they were shown before they were laid out.
const RENDERED: &str = "rendered.json";

// === impl FrozenChangeSet ===

impl FrozenChangeSet {
    /// The changes as a diff against what the run began with, as far as that is still there, with the drift.
    ///
    /// # Errors
    /// [`DirectoryError`] for what can't be read.
    pub fn render(&self) -> Result<WorkspaceChanges, KeptError> {
        self.render_part(&self.set)
    }

    /// A part of them.
    ///
    /// # Errors
    /// [`DirectoryError`] for what can't be read.
    pub fn render_part(&self, set: &ChangeSet) -> Result<WorkspaceChanges, KeptError> {
        let mut changes = diff::render(set, self.base.as_ref().unwrap_or(&self.source), &self.layer)?;
        self.drift.add_to(&mut changes);
        Ok(changes)
    }

    /// Returns the files of a part of the changes that a review lists without showing their content.
    ///
    /// # Errors
    /// [`DirectoryError`] for what can't be read.
    pub fn unshown(&self, set: &ChangeSet) -> Result<Vec<PathBuf>, KeptError> {
        Ok(diff::unshown(set, self.base.as_ref().unwrap_or(&self.source), &self.layer)?)
    }

    /// The digest of the changes, as `belljar session diff` has it while a session lives.
    ///
    /// # Errors
    /// [`DirectoryError`] for what can't be read.
    pub fn digest(&self) -> Result<ReviewDigest, KeptError> {
        self.digest_of(&self.set)
    }

    /// The digest of a part of them.
    ///
    /// # Errors
    /// [`DirectoryError`] for what can't be read.
    pub fn digest_of(&self, set: &ChangeSet) -> Result<ReviewDigest, KeptError> {
        Ok(ReviewDigest::of(set, self.base.as_ref().unwrap_or(&self.source), &self.layer)?)
    }

    /// Changed paths that are too long, which are neither shown nor applied and stay in the folder.
    pub fn left_out(&self) -> &[PathBuf] {
        self.set.left_out()
    }

    /// The changes at some paths and below; all of them for no paths.
    pub fn part(&self, paths: &[PathBuf]) -> ChangeSet {
        self.set.only(|path| {
            paths.is_empty()
                || paths.iter().any(|named| path.starts_with(named) || self.is_made_for(path, named))
        })
    }

    /// Returns true if a directory is new and on the way to a path that is wanted.
    fn is_made_for(&self, path: &Path, named: &Path) -> bool {
        named.starts_with(path)
            && self.set.iter().any(|(changed, what)| changed == path && what.before.is_none())
    }
}

/// Removes a directory of the host's own, if it is there.
fn remove_tree(path: &Path) -> io::Result<()> {
    match Directory::open_host(path) {
        Ok(directory) => {
            directory.clear().map_err(io::Error::from)?;
            std::fs::remove_dir(path)
        }
        Err(error) if error.source == rustix::io::Errno::NOENT => Ok(()),
        Err(error) => Err(error.into()),
    }
}
