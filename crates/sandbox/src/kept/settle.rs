//! The end of a run on a copy: a folder with changes moves to the kept ones by one rename, and one without is removed.

use super::age::UpTime;
use super::garbage::{self, CollectedChangeSet};
use super::open::KeptChangeSet;
use super::record::{CopyRecord, RECORD, write_whole};
use super::{KeptError, SUMMARY};
use crate::state::{RunFolder, StateDirectory};
use crate::workspace::changes::{ChangesError, lines};
use crate::workspace::growth;
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::Path;

/// Summary of a kept change set, available without reading its layer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeSetSummary {
    /// Time at which it was kept.
    pub kept_at: Timestamp,
    /// Time at which it was kept, by the clock that is never set.
    #[serde(default)]
    pub kept_at_up_time: Option<UpTime>,
    /// True if its run was cut off: the process that looked after it was killed, or the machine went down.
    pub was_cut_off: bool,
    /// Number of changed files and directories; `None` if it can't be determined.
    pub files: Option<u64>,
    /// Disk usage in bytes, with all that is kept of its run.
    pub bytes: u64,
    /// True if the changes are laid out in the run's own source, as a whole tree.
    #[serde(default)]
    pub is_laid_out: bool,
}

/// Result of settling the folder of a run.
#[derive(Debug)]
pub enum SettledRun {
    /// No changes; the folder is still the caller's.
    Unchanged(RunFolder),
    /// The changes are kept, and what was collected to make room for them.
    Kept(Box<KeptChangeSet>, Vec<CollectedChangeSet>),
}

/// Keeps the changes in the folder of a run in which nothing runs any more.
///
/// # Errors
/// [`KeptError`]; the folder stays where it is, and becomes a kept change set the next time that leftovers are looked for.
pub fn settle(state: &StateDirectory, folder: RunFolder, was_cut_off: bool) -> Result<SettledRun, KeptError> {
    let Some(record) = CopyRecord::read(folder.path()).map_err(at(folder.path()))? else {
        return Ok(SettledRun::Unchanged(folder));
    };
    let files = match count(&record, folder.path()) {
        Ok(0) => return Ok(SettledRun::Unchanged(folder)),
        Ok(files) => Some(files),
        Err(_) => None,
    };
    drop_scratch(folder.path(), &record);
    let opened = Directory::open_host(folder.path())?;
    let summary = ChangeSetSummary {
        kept_at: Timestamp::now(),
        kept_at_up_time: UpTime::now(),
        was_cut_off,
        files,
        bytes: growth::bytes_of(opened),
        is_laid_out: false,
    };
    write_summary(folder.path(), &summary)?;
    let kept = state.create_kept().map_err(at(&state.kept()))?;
    let to = kept.join(folder.id().as_str());
    // Without its record a change set is nothing that can be listed.
    File::open(folder.path().join(RECORD)).and_then(|record| record.sync_all()).map_err(at(folder.path()))?;
    belljar_failpoint::reached("kept.before_move");
    let (id, lock) = folder.move_to(&to).map_err(at(&to))?;
    belljar_failpoint::reached("kept.moved");
    // The name survives a crash of the machine; so do the files that were written when the kernel got round to it.
    let _ = File::open(&kept).and_then(|kept| kept.sync_all());
    let kept = KeptChangeSet::of(id, to, lock, (record, summary));
    let collected = garbage::collect(state, Some(kept.id()));
    Ok(SettledRun::Kept(Box::new(kept), collected))
}

/// Keeps the changes of a run whose folder was left by its owner, who is gone. `None` if there are none, or the folder is
/// not there, or its owner lives.
///
/// # Errors
/// [`KeptError`] as from [`settle`].
pub fn settle_by_id(
    state: &StateDirectory,
    id: &RunId,
    was_cut_off: bool,
) -> Result<Option<Box<KeptChangeSet>>, KeptError> {
    let Some(folder) = state.adopt_destroyed(id) else { return Ok(None) };
    match settle(state, folder, was_cut_off)? {
        SettledRun::Unchanged(folder) => {
            folder.remove()?;
            Ok(None)
        }
        SettledRun::Kept(kept, _) => Ok(Some(kept)),
    }
}

/// Returns the number of changed files and directories. It can't be determined if the source is gone.
fn count(record: &CopyRecord, folder: &Path) -> Result<u64, ChangesError> {
    let folder = Directory::open_host(folder)?;
    let layer = record.open_layer(&folder)?;
    if record.is_layer() && layer.names(1).is_ok_and(|names| names.is_empty()) {
        return Ok(0);
    }
    let base = match record.open_base(&folder)? {
        Some(base) => base,
        None => record.open_source(&folder)?,
    };
    let set = record.read_changes(&base, &layer)?;
    Ok((lines(set.iter()).len() + set.left_out().len()) as u64)
}

/// Removes what the kernel alone needed: the scratch directory beside a layer.
fn drop_scratch(folder: &Path, record: &CopyRecord) {
    let work = folder.join(record.layer()).with_file_name("work");
    if record.is_layer()
        && let Ok(directory) = Directory::open_host(&work)
        && directory.clear().is_ok()
    {
        let _ = std::fs::remove_dir(work);
    }
}

pub(super) fn write_summary(folder: &Path, summary: &ChangeSetSummary) -> Result<(), KeptError> {
    let bytes = serde_json::to_vec(summary).map_err(io::Error::from);
    bytes.and_then(|bytes| write_whole(folder, SUMMARY, &bytes)).map_err(at(folder))
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> KeptError {
    let path = path.to_owned();
    move |source| KeptError::Io { path, source }
}
