//! A change set as it is written to a file: a list of paths, each with its old and its new state.

use super::{ChangeSet, PathChange, PathState};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A stored change. Names are bytes, which can't be the members of a JSON object.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredChange {
    path: Vec<u8>,
    before: Option<StoredState>,
    after: Option<StoredState>,
    same_content: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredState {
    /// The type bits of a mode, as `stat` has them.
    kind: u32,
    mode: u32,
    size: u64,
}

impl From<ChangeSet> for Vec<StoredChange> {
    fn from(set: ChangeSet) -> Self {
        let stored = |(path, changed): (&std::path::Path, &PathChange)| StoredChange {
            path: path.as_os_str().as_bytes().to_owned(),
            before: changed.before.map(StoredState::from),
            after: changed.after.map(StoredState::from),
            same_content: changed.same_content,
        };
        set.iter().map(stored).collect()
    }
}

impl From<Vec<StoredChange>> for ChangeSet {
    fn from(stored: Vec<StoredChange>) -> Self {
        let change = |StoredChange { path, before, after, same_content }| {
            let (before, after) = (before.map(PathState::from), after.map(PathState::from));
            (OsString::from_vec(path).into(), PathChange { before, after, same_content })
        };
        Self { changes: stored.into_iter().map(change).collect(), left_out: Vec::new() }
    }
}

impl From<PathState> for StoredState {
    fn from(PathState { kind, mode, size }: PathState) -> Self {
        Self { kind: kind.as_raw_mode(), mode, size }
    }
}

impl From<StoredState> for PathState {
    fn from(StoredState { kind, mode, size }: StoredState) -> Self {
        Self { kind: FileType::from_raw_mode(kind), mode, size }
    }
}
