//! Garbage collection of kept changes: by age, and largest first when all of them are larger than they may be together.
//!
//! A change set is never collected before its age while all of them have room. The newest always stays and takes no room from the
//! others, and the largest is removed first: otherwise a program could have the work of earlier runs removed by writing a lot. What
//! was collected is written to a log, which `belljar changes list` shows.

use super::SUMMARY;
use super::age::age;
use super::open::{KeptChangeSet, ListedChangeSet, list};
use super::record::write_whole;
use crate::state::StateDirectory;
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Retention of changes, by age and by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// The age at which a change set is removed. Default: 14 days.
    pub keep_for: Duration,
    /// Maximum number of bytes of all but the newest together. Default: 10 GiB.
    pub most_bytes: u64,
}

/// A change set that was collected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedChangeSet {
    /// Id of the change set.
    pub id: RunId,
    /// Time of the removal.
    pub removed_at: Timestamp,
    /// Time at which it was kept.
    pub kept_at: Timestamp,
    /// Reason for the removal.
    pub reason: CollectionReason,
    /// Number of bytes that it took.
    pub bytes: u64,
    /// Title of the run that made the changes.
    pub title: String,
}

/// Why a change set was collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectionReason {
    /// It was older than the limit.
    Age,
    /// The total exceeded the limit, and it was the largest.
    Size,
}

/// Why the retention can't be read or set.
#[derive(Debug, thiserror::Error)]
#[error("can't use the retention of kept changes in {}", path.display())]
pub struct RetentionError {
    /// File that is affected.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

const RETENTION: &str = "retention.json";
const LOG: &str = "collected.jsonl";

/// Folders that are being removed.
const REMOVED: &str = ".removed-";

/// The log is cut to its last half when it is longer.
const LONGEST_LOG_BYTES: usize = 256 << 10;

impl Default for Retention {
    fn default() -> Self {
        Self { keep_for: Duration::from_secs(14 * 86_400), most_bytes: 10 << 30 }
    }
}

/// The retention of a state directory: the default, if none was set.
///
/// # Errors
/// [`RetentionError`] when it can't be read.
pub fn retention(state: &StateDirectory) -> Result<Retention, RetentionError> {
    let path = state.kept().join(RETENTION);
    match std::fs::read(&path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| RetentionError { path, source: error.into() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Retention::default()),
        Err(source) => Err(RetentionError { path, source }),
    }
}

/// Sets the retention of a state directory.
///
/// # Errors
/// [`RetentionError`] when it can't be written.
pub fn set_retention(state: &StateDirectory, retention: Retention) -> Result<(), RetentionError> {
    let made = state.create_kept();
    let bytes = serde_json::to_vec(&retention).map_err(io::Error::from);
    let written = made.and_then(|kept| write_whole(&kept, RETENTION, &bytes?));
    written.map_err(|source| RetentionError { path: state.kept().join(RETENTION), source })
}

/// Removes what is due, but not `spared`, and returns it. Without a retention that can be read nothing is removed.
pub fn collect(state: &StateDirectory, spared: Option<&RunId>) -> Vec<CollectedChangeSet> {
    sweep(state);
    let Ok(retention) = retention(state) else { return Vec::new() };
    // One that a person works on at the moment stays.
    let remove = |listed: &ListedChangeSet| {
        KeptChangeSet::open(&listed.path).is_ok_and(|kept| kept.is_some_and(|kept| kept.remove().is_ok()))
    };
    let removed = pick(state, (retention, spared), remove);
    note(state, &removed);
    removed
}

/// Returns the change sets that this retention would remove. Removes nothing.
pub fn due(state: &StateDirectory, retention: Retention) -> Vec<CollectedChangeSet> {
    pick(state, (retention, None), |_| true)
}

/// Calls `remove` with what is due, and returns those for which it returned true.
fn pick(
    state: &StateDirectory,
    (retention, spared): (Retention, Option<&RunId>),
    mut remove: impl FnMut(&ListedChangeSet) -> bool,
) -> Vec<CollectedChangeSet> {
    let mut all = list(state);
    let newest = all.last().map(|listed| listed.id.clone());
    let is_spared =
        |listed: &ListedChangeSet| Some(&listed.id) == spared || Some(&listed.id) == newest.as_ref();
    let counted = all.iter().filter(|listed| !is_spared(listed));
    let mut bytes: u64 = counted.map(|listed| listed.summary.bytes).sum();
    // Those that are due make room first. Of two that are as large, the older one.
    all.sort_by_key(|listed| (!is_due(listed, retention), Reverse(listed.summary.bytes)));
    let mut removed = Vec::new();
    for listed in &all {
        let reason = match (is_due(listed, retention), bytes > retention.most_bytes && !is_spared(listed)) {
            (true, _) if Some(&listed.id) != spared => CollectionReason::Age,
            (_, true) => CollectionReason::Size,
            _ => continue,
        };
        if remove(listed) {
            if !is_spared(listed) {
                bytes = bytes.saturating_sub(listed.summary.bytes);
            }
            removed.push(CollectedChangeSet::of(listed, reason));
        }
    }
    removed
}

fn is_due(listed: &ListedChangeSet, retention: Retention) -> bool {
    let most = jiff::SignedDuration::try_from(retention.keep_for).unwrap_or(jiff::SignedDuration::MAX);
    age(listed.summary.kept_at, listed.summary.kept_at_up_time.as_ref()).is_some_and(|age| age > most)
}

/// Returns the change sets that were collected lately, oldest first.
pub fn collected(state: &StateDirectory) -> Vec<CollectedChangeSet> {
    let log = std::fs::read_to_string(state.kept().join(LOG)).unwrap_or_default();
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Writes down what was collected. What can't be written is no reason to stop.
fn note(state: &StateDirectory, removed: &[CollectedChangeSet]) {
    if removed.is_empty() {
        return;
    }
    let path = state.kept().join(LOG);
    let lines: String =
        removed.iter().filter_map(|one| serde_json::to_string(one).ok()).map(|line| line + "\n").collect();
    let log = std::fs::read_to_string(&path).unwrap_or_default();
    if log.len() + lines.len() > LONGEST_LOG_BYTES {
        let from = log[log.len() / 2..].find('\n').map_or(log.len(), |at| log.len() / 2 + at + 1);
        let _ = write_whole(&state.kept(), LOG, (log[from..].to_owned() + &lines).as_bytes());
        return;
    }
    let appended = File::options().append(true).create(true).mode(0o600).open(path);
    let _ = appended.and_then(|mut log| log.write_all(lines.as_bytes()));
}

/// Removes the folder of a change set. From the first moment on it is none any more.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let removed = folder.with_file_name(format!("{REMOVED}{name}"));
    std::fs::rename(folder, &removed)?;
    belljar_failpoint::reached("kept.removed");
    clear(&removed)
}

/// Goes on with what was being removed when a process died.
fn sweep(state: &StateDirectory) {
    let folders = std::fs::read_dir(state.kept()).into_iter().flatten().flatten();
    for folder in folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(REMOVED)) {
        let _ = clear(&folder.path());
    }
}

fn clear(removed: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(removed.join(SUMMARY));
    Directory::open_host(removed)?.clear().map_err(io::Error::from)?;
    std::fs::remove_dir(removed)
}

// === impl CollectedChangeSet ===

impl CollectedChangeSet {
    fn of(listed: &ListedChangeSet, reason: CollectionReason) -> Self {
        Self {
            id: listed.id.clone(),
            removed_at: Timestamp::now(),
            kept_at: listed.summary.kept_at,
            reason,
            bytes: listed.summary.bytes,
            title: listed.record.label.title.clone(),
        }
    }
}
