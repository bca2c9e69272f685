//! Works out what a whole patch would make of a workspace, before any byte of it changes.
//!
//! Sections are taken in order, as `git apply` does it:
//! - an edit sees what earlier sections made of its file;
//! - a rename or copy reads its source as it was *before the patch*, whatever other sections do to it, so that
//!   files can be swapped;
//! - a file may be created where another section removes one, earlier or later;
//! - in the end all removals come first, then all results in order. So a file that is edited and later deleted
//!   stays, edited. We'd rather have refused that, but a patch must mean the same to us as to git.
//!
//! Absent: the carrying out. See [`Plan`] for what is left to the caller.

mod layout;
mod outcome;
mod section;
mod tree;

use std::collections::HashMap;
use std::io;

use super::apply::{ApplyError, HunkPlace};
use super::limits::Limits;
use super::mode::FileMode;
use super::name::RelativeName;
use super::parse::Patch;
use super::refusal::Refusal;
use super::work::WorkBudget;
use outcome::Removal;
pub use tree::{FileTree, FileTreeEntry, FileTreeEntryKind};

/// Effect of a patch on the tree.
///
/// To carry it out, first bring all new content beside the tree (from [`Content::Before`], before anything moves), then
/// remove all of [`removed`](Self::removed), with parent directories that this empties, then put all new content in
/// place, making directories as needed. A path in `changes` may be a directory now: then it is one that the removals
/// empty, or an empty one, which must be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// All files that are written or deleted, in the order of the diff.
    pub changes: Vec<Change>,
    /// The files that won't exist any more: those deleted, and sources of renames.
    pub removed: Vec<RelativeName>,
}

/// Change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, by its new name.
    pub path: RelativeName,
    /// Kind of the change.
    pub what: FileChangeKind,
    /// State after the patch; `None` if the file is deleted.
    pub after: Option<ResultingFile>,
    /// Places of the hunks of all sections about this file.
    pub hunks: Vec<HunkPlace>,
}

/// Kind of a file's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChangeKind {
    /// The file didn't exist.
    Created,
    /// The file gets new content, perhaps a new mode.
    Modified,
    /// The file is deleted.
    Deleted,
    /// The file gets a new name, perhaps with new content.
    Renamed {
        /// The old name.
        from: RelativeName,
    },
    /// The file is a copy of one that stays, perhaps with new content.
    Copied {
        /// The source.
        from: RelativeName,
    },
    /// Its mode changes and nothing else.
    ModeChanged,
}

/// A file as the patch leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultingFile {
    /// Its mode.
    pub mode: FileMode,
    /// Its content.
    pub content: Content,
}

/// A file's content after the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Content of this file before the patch, which the plan hasn't read.
    Before(RelativeName),
}

/// Reason why a patch can't be applied. No file was changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The patch doesn't fit the tree.
    #[error("line {line}: {path}: {reason}")]
    Unfit {
        /// 1-based line of the file section in the diff.
        line: u32,
        /// The file.
        path: RelativeName,
        /// Reason why it doesn't fit.
        reason: SectionMismatch,
    },
    /// The patch touches a path that no patch may touch.
    #[error("line {line}: {path}: {reason}")]
    Refused {
        /// 1-based line of the file section in the diff.
        line: u32,
        /// The file.
        path: RelativeName,
        /// Reason of the refusal.
        reason: Refusal,
    },
    /// The new content is larger than the limits allow.
    #[error("line {line}: the patch makes more than {max} bytes of new content")]
    TooLarge {
        /// 1-based line of the file section in the diff.
        line: u32,
        /// The limit.
        max: usize,
    },
    /// The work limit is exceeded.
    #[error("line {line}: too much work")]
    TooMuchWork {
        /// 1-based line of the file section in the diff.
        line: u32,
    },
    /// A file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: RelativeName,
        /// Underlying error.
        #[source]
        source: io::Error,
    },
}

/// Reason why a section doesn't fit the tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionMismatch {
    /// The file to read isn't there.
    #[error("no such file")]
    Missing,
    /// The file to create is there already.
    #[error("already exists")]
    Exists,
    /// An earlier section renamed or deleted the file to read.
    #[error("renamed or deleted by an earlier section of the patch")]
    Gone,
    /// A directory has the name of the file.
    #[error("is a directory")]
    Directory,
    /// A file has the name of a directory above.
    #[error("{file} is a file, not a directory")]
    FileAbove {
        /// The file in the way.
        file: RelativeName,
    },
    /// The file is to be deleted, but the patch doesn't remove all its lines.
    #[error("lines remain in a file that is to be deleted")]
    Remains,
    /// A hunk doesn't match.
    #[error("{0}")]
    Hunk(ApplyError),
}

/// Plans `patch` on `tree`, within the default [`Limits`].
pub fn plan(patch: &Patch<'_>, tree: &mut impl FileTree) -> Result<Plan, PlanError> {
    plan_within(patch, tree, &Limits::default())
}

/// Plans `patch` on `tree`, within the given limits.
pub fn plan_within(patch: &Patch<'_>, tree: &mut impl FileTree, limits: &Limits) -> Result<Plan, PlanError> {
    let mut planner = Planner {
        patch,
        tree,
        paths: HashMap::with_capacity(patch.files().len()),
        results: Vec::with_capacity(patch.files().len()),
        removals: HashMap::new(),
        budget: WorkBudget::new(limits.work_steps),
        result_bytes: 0,
        max_result_bytes: limits.result_bytes,
    };
    planner.announce_removals();
    for file in patch.files() {
        planner.section(file)?;
    }
    planner.check_layout()?;
    Ok(planner.into_plan())
}

/// The state of one planning.
struct Planner<'p, T> {
    patch: &'p Patch<'p>,
    tree: &'p mut T,
    paths: HashMap<&'p RelativeName, PathFacts>,
    /// Results of the sections that have one.
    results: Vec<outcome::SectionOutcome<'p>>,
    /// Files that sections remove, keyed by name; they may be written all the same.
    removals: HashMap<&'p RelativeName, Removal>,
    budget: WorkBudget,
    result_bytes: usize,
    max_result_bytes: usize,
}

/// Facts about a path for later sections, from earlier sections or from a section itself.
#[derive(Debug, Clone, Copy, Default)]
struct PathFacts {
    seen_as: PathStatus,
    /// The result that will be written there, the last one counting.
    written: Option<usize>,
}

/// State of a path for a section that edits or creates it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PathStatus {
    /// The path is as in the tree.
    #[default]
    Before,
    /// The path is as in the tree, but a later section removes it.
    ToBeRemoved,
    /// An earlier section removed it.
    Removed,
    /// The path is as this result left it.
    Result(usize),
}

// === impl PlanError ===

impl PlanError {
    /// Returns true if the patch was refused by policy, rather than for not fitting.
    pub fn is_policy(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

#[cfg(test)]
mod tests;
