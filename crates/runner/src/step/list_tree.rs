//! `list_tree`: the entries of a directory, as data.
//!
//! The listing is truncated and flagged at `max_entries` (default 200 000), and when its paths exceed
//! `max_output_bytes` together.

use super::StepContext;
use crate::content::Content;
use crate::deadline::Deadline;
use crate::directory::PathError;
use crate::failure_code::Fault;
use crate::glob::{Glob, GlobError};
use crate::walk::{self, WalkEntry, WalkError, WalkOptions};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::list_tree::ListTree;
use belljar_contract::result::output::{ContentEncoding, Listing, StepOutput, TreeEntry};
use belljar_policy::admission::AdmissionDenial;
use std::ops::ControlFlow;
use std::path::Path;

/// Reason why nothing was listed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListTreeError {
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Glob(#[from] GlobError),
    #[error(transparent)]
    Walk(#[from] WalkError),
}

/// Default maximum number of entries.
const DEFAULT_MAX_ENTRIES: usize = 200_000;

/// A listing in the making.
struct TreeListing {
    entries: Vec<TreeEntry>,
    /// Prefix of each path: that of the listed directory, with a slash.
    prefix: Vec<u8>,
    entries_left: usize,
    bytes_left: usize,
}

pub(super) fn carry_out(
    list: &ListTree,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<StepOutput, ListTreeError> {
    let path = surroundings.resolve(list.path.as_ref())?;
    let glob = list.glob.as_deref().map(Glob::of_paths).transpose()?;
    let root = surroundings.workspace.subdirectory(Path::new(path.as_str()))?;
    let as_count = |number: Option<u32>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let mut draft = TreeListing {
        entries: Vec::new(),
        prefix: if path.is_root() { Vec::new() } else { format!("{path}/").into_bytes() },
        entries_left: as_count(list.max_entries).unwrap_or(DEFAULT_MAX_ENTRIES),
        bytes_left: surroundings.max_output(),
    };
    // Unused capacity costs nothing; a listing that is moved while it grows costs as much again.
    let _ = draft.entries.try_reserve(draft.entries_left.min(DEFAULT_MAX_ENTRIES));
    let route = WalkOptions {
        max_depth: as_count(list.max_depth).unwrap_or(usize::MAX),
        targets: true,
        sizes: list.sizes,
        read_ahead_after: Some(walk::WORTH_A_THREAD),
    };
    let mut overfull = false;
    let missed = walk::walk(&root, route, deadline, |met| {
        if glob.as_ref().is_some_and(|glob| !glob.matches(met.path)) {
            return ControlFlow::Continue(());
        }
        overfull = !draft.add(met);
        if overfull { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(StepOutput::ListTree(Listing {
        path: path.to_string(),
        entries: draft.entries,
        truncated: overfull || missed.too_much,
        unreadable_directories: missed.unreadable,
    }))
}

// === impl TreeListing ===

impl TreeListing {
    /// Adds an entry, unless a limit is reached.
    fn add(&mut self, met: &WalkEntry<'_>) -> bool {
        let bytes = self.prefix.len() + met.path.len() + met.target.map_or(0, <[u8]>::len);
        if self.entries_left == 0 || self.bytes_left < bytes {
            return false;
        }
        self.entries_left -= 1;
        self.bytes_left -= bytes;
        self.entries.push(self.entry(met));
        true
    }

    fn entry(&self, met: &WalkEntry<'_>) -> TreeEntry {
        let path = [&self.prefix, met.path].concat();
        let is_text = met.target.is_none_or(|target| std::str::from_utf8(target).is_ok());
        let (path, target, encoding) = match String::from_utf8(path) {
            Ok(path) if is_text => {
                (path, met.target.map(|target| Content::whole(target.to_vec()).text), None)
            }
            Ok(path) => Self::in_base64(path.as_bytes(), met.target),
            Err(error) => Self::in_base64(error.as_bytes(), met.target),
        };
        TreeEntry { path, kind: met.kind, size_bytes: met.size_bytes, target, encoding }
    }

    fn in_base64(path: &[u8], target: Option<&[u8]>) -> (String, Option<String>, Option<ContentEncoding>) {
        let encode = |bytes: &[u8]| Content::base64(bytes).text;
        (encode(path), target.map(encode), Some(ContentEncoding::Base64))
    }
}

// === impl ListTreeError ===

impl Fault for ListTreeError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::Path(error) | Self::Walk(WalkError::Path(error)) => error.code(),
            Self::Glob(_) => FailureCode::StepFailed,
            Self::Walk(WalkError::Interrupted(interrupted)) => interrupted.code(),
        }
    }
}
