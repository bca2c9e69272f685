//! Applies a change set to the directory that it was made from.
//!
//! A change that gains trust there takes an approval, or nothing is applied (`policy::handoff`). Nothing is applied either
//! if a file concerned was touched in the directory since the copy was made: its author would lose work. Each file is
//! replaced atomically; a link the job has made is created as a link and never followed. A file that is touched while the
//! changes are written is left as it is ([`expected`](super::expected)).

use super::baseline::Baseline;
use super::changes::{ChangeSet, PathChange, PathState};
use super::expected::Expectations;
use super::foreign_changes::TouchedPaths;
use super::handoff::{self, ReviewOutcome};
use super::references;
use super::transfer::{TransferError, TransferOwner, TransferRoute};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_policy::handoff::{ApprovedPaths, Finding};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Why a change set was not applied, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Files changed in the meantime. Nothing was applied.
    #[error("changed in the meantime: {}", listed(paths))]
    Conflict {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Files were changed while the changes were written, and are left as they are. All others were applied.
    #[error("changed while the changes were written, and left as they are: {}", listed(paths))]
    Overtaken {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// An approval is needed first. Nothing was applied.
    #[error("{} of the paths gain trust at the destination and have no approval", findings.len())]
    Handoff {
        /// Which, and why.
        findings: Vec<Finding>,
    },
    /// A path can't be read or reached.
    #[error("can't apply the changes")]
    Directory(#[from] DirectoryError),
    /// A path can't be written. Those before it were.
    #[error("can't write {}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Applies the change set. `since` is when the copy was made.
///
/// # Errors
/// [`ApplyError`]; see there what was applied.
pub fn apply(
    set: &ChangeSet,
    copy: &Directory,
    target: &Directory,
    since: SystemTime,
    trust: &ApprovedPaths,
) -> Result<(), ApplyError> {
    commit(set, copy, target, &mut Baseline::at(since), trust)
}

/// Applies the change set of a copy in which work goes on. The applied changes are noted in its baseline. After a failure,
/// a second call applies the rest.
///
/// # Errors
/// [`ApplyError`]; see there what was applied.
pub fn commit(
    set: &ChangeSet,
    copy: &Directory,
    target: &Directory,
    baseline: &mut Baseline,
    trust: &ApprovedPaths,
) -> Result<(), ApplyError> {
    let ReviewOutcome { findings, links } = handoff::review(set, copy, target)?;
    let findings = trust.without(findings);
    if !findings.is_empty() {
        return Err(ApplyError::Handoff { findings });
    }
    let expectations = begin(set, target, baseline)?;
    let changes: Vec<(&Path, PathChange)> = set.iter().map(|(path, changed)| (path, *changed)).collect();
    let temporary = baseline.temporary().to_owned();
    let open = Directory::open_own_file;
    let (from, links, expected) = (copy, Some(&links), Some(&expectations));
    let route = TransferRoute {
        from,
        links,
        open,
        to: target,
        owner: TransferOwner::AsBefore,
        temporary: &temporary,
        expected,
    };
    let left_alone = route.carry(&changes, |path, left| baseline.note(path, left))?;
    note_parents(set, target, baseline)?;
    match left_alone.is_empty() {
        true => Ok(()),
        false => Err(ApplyError::Overtaken { paths: left_alone.into_iter().collect() }),
    }
}

/// Looks for conflicts, and records the directories in which something is written, before anything is. So they are known after an
/// interrupted attempt, which has changed their times itself. Returns what the target holds at the paths of the change set.
///
/// # Errors
/// [`ApplyError::Conflict`] if there are any.
fn begin(set: &ChangeSet, target: &Directory, baseline: &mut Baseline) -> Result<Expectations, ApplyError> {
    let mut expectations = Expectations::default();
    let paths = conflicts(set, target, baseline, &mut expectations)?;
    if !paths.is_empty() {
        return Err(ApplyError::Conflict { paths });
    }
    note_way(set, target, baseline)?;
    Ok(expectations)
}

/// Looks for conflicts as [`commit`] does before it writes, and records what it records.
///
/// # Errors
/// [`ApplyError::Conflict`] if there are any.
pub(crate) fn check(set: &ChangeSet, target: &Directory, baseline: &mut Baseline) -> Result<(), ApplyError> {
    begin(set, target, baseline).map(drop)
}

/// Records the directories in which something is about to be written, those that are about to be made, and what is about to be removed
/// for something else. `set` is relative to the target as it is.
pub(super) fn note_way(
    set: &ChangeSet,
    target: &Directory,
    baseline: &mut Baseline,
) -> Result<(), DirectoryError> {
    let is_directory =
        |state: Option<PathState>| state.is_some_and(|state| state.kind == FileType::Directory);
    let made = set.iter().filter(|(_, changed)| is_directory(changed.after) && !is_directory(changed.before));
    baseline.set_making(made.map(|(path, _)| path));
    let cleared = set.iter().filter(|(_, changed)| {
        let kinds = [changed.before, changed.after].map(|state| state.map(|state| state.kind));
        matches!(kinds, [Some(before), Some(after)] if before != after)
    });
    baseline.add_clearing(cleared.map(|(path, _)| path));
    baseline.add_writing(set.iter().filter_map(|(path, _)| path.parent()));
    set.iter().filter(|(_, changed)| changed.before.is_none()).for_each(|(path, _)| baseline.note_free(path));
    note_directories(set.iter().map(|(path, _)| path), target, baseline)
}

/// Records the directories that are, and that are on the way to, these paths.
fn note_directories<'p>(
    paths: impl Iterator<Item = &'p Path>,
    target: &Directory,
    baseline: &mut Baseline,
) -> Result<(), DirectoryError> {
    let directories: BTreeSet<&Path> = paths.flat_map(Path::ancestors).collect();
    for path in directories.into_iter().filter(|path| !path.as_os_str().is_empty()) {
        if let Some(stat) = target.stat(path)? {
            baseline.note_directory(path, &stat);
        }
    }
    Ok(())
}

fn conflicts(
    set: &ChangeSet,
    target: &Directory,
    baseline: &Baseline,
    expectations: &mut Expectations,
) -> Result<Vec<PathBuf>, ApplyError> {
    let mut conflicts = Vec::new();
    let mut touched = TouchedPaths::in_target((target, None), baseline);
    for (path, changed) in set.iter() {
        let now = target.stat(path)?;
        expectations.note(path, now.as_ref());
        if touched.is_touched((path, changed), now.as_ref())? {
            conflicts.push(path.to_owned());
        }
    }
    Ok(conflicts)
}

/// Notes how a commit has left the directories in which it added, replaced or removed names.
pub(super) fn note_parents(
    set: &ChangeSet,
    target: &Directory,
    baseline: &mut Baseline,
) -> Result<(), DirectoryError> {
    baseline.end_commit();
    for (path, changed) in set.iter() {
        if changed.after.is_none() && target.stat(path)?.is_none() {
            baseline.note_removed(path);
        }
        if path.file_name().is_some_and(|name| name == references::NAME) {
            note_references(path, target, baseline)?;
        }
    }
    note_directories(set.iter().map(|(path, _)| path), target, baseline)?;
    let parents: BTreeSet<&Path> = set.iter().filter_map(|(path, _)| path.parent()).collect();
    for parent in parents {
        let stat = match parent.as_os_str().is_empty() {
            true => Some(target.stat_itself()?),
            false => target.stat(parent)?,
        };
        if let Some(stat) = stat {
            baseline.note(parent, &stat);
        }
    }
    Ok(())
}

/// Records the packed references of a repository as a commit has left them.
fn note_references(file: &Path, target: &Directory, baseline: &mut Baseline) -> Result<(), DirectoryError> {
    let repository = file.parent().unwrap_or(Path::new(""));
    let opened = if repository.as_os_str().is_empty() { target.try_clone() } else { target.open(repository) };
    match opened {
        Ok(opened) => baseline.note_references(repository, &opened),
        // The repository was removed with it.
        Err(DirectoryError { source: Errno::NOENT | Errno::NOTDIR, .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

// === impl ApplyError ===

impl From<TransferError> for ApplyError {
    fn from(TransferError { path, source }: TransferError) -> Self {
        Self::Write { path, source }
    }
}
