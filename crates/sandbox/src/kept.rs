//! Kept changes: what runs and sessions changed in copies of directories, until a person applies or removes it.
//!
//! ```text
//! copy made ─► runs/ID with copy.json ── its sandbox is gone, however it ended ─► no changes ─► removed
//!                                                                              └► changes ────► kept/ID
//! kept/ID ─► applied, pushed or removed by a person, or collected: by age, or oldest first when all are too large
//! ```
//! The record of a copy is written before its sandbox starts. So the changes survive the death of every process: the
//! folder of a run with a record is never removed implicitly. It becomes a kept change set by one rename.

mod age;
mod garbage;
mod open;
mod record;
mod settle;
#[cfg(test)]
mod tests;

pub use garbage::{
    CollectedChangeSet, CollectionReason, Retention, RetentionError, collect, collected, due, retention,
    set_retention,
};
pub use open::{FrozenChangeSet, KeptChangeSet, KeptError, ListedChangeSet, find, list, stranded};
pub(crate) use record::RECORD;
pub use record::{CopyRecord, HostFile, RunKind, RunLabel};
pub use settle::{ChangeSetSummary, SettledRun, settle, settle_by_id};

use crate::state::StateDirectory;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The area of kept changes in a state directory.
const AREA: &str = "kept";

/// The summary of a kept change set, in its folder.
const SUMMARY: &str = "kept.json";

// === impl StateDirectory ===

impl StateDirectory {
    /// The directory of kept changes.
    pub fn kept(&self) -> PathBuf {
        self.path().join(AREA)
    }

    /// Makes the directory of kept changes, which no other user can enter.
    fn create_kept(&self) -> io::Result<PathBuf> {
        self.create()?;
        let kept = self.kept();
        DirBuilder::new().recursive(true).mode(0o700).create(&kept)?;
        Ok(kept)
    }
}
