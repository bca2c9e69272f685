//! Results of sections, and their combination for each file.

use std::mem;

use super::section::Origin;
use super::tree::FileTreeEntryKind;
use super::{Change, Content, FileChangeKind, PathStatus, Plan, PlanError, Planner, ResultingFile};
use crate::patch::apply::HunkPlace;
use crate::patch::name::RelativeName;
use crate::patch::parse::{Claim, FileDiff};

/// Result of a section.
#[derive(Debug)]
pub(super) struct SectionOutcome<'p> {
    pub(super) file: &'p FileDiff,
    pub(super) what: FileChangeKind,
    pub(super) after: ResultingFile,
    pub(super) places: Vec<HunkPlace>,
    /// Kind of entry in the tree at the result's path.
    pub(super) there: Option<FileTreeEntryKind>,
}

/// A file that sections remove, even if others write it again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Removal {
    /// The last section that removes it.
    pub(super) section: usize,
    /// True if that section also removes directories it empties.
    pub(super) prunes: bool,
    /// True if the file is in the tree, rather than made by the patch itself.
    is_in_tree: bool,
}

// === impl Planner ===

impl<'p, T> Planner<'p, T> {
    /// Notes what a section made of what it found in `origin`.
    pub(super) fn record(
        &mut self,
        mut outcome: SectionOutcome<'p>,
        origin: &Origin,
    ) -> Result<(), PlanError> {
        let number = self.results.len();
        let file = outcome.file;
        self.grow(&outcome)?;
        if let (Origin::Result(earlier), true) = (origin, is_in_place(file)) {
            outcome.continue_from(&mut self.results[*earlier]);
        }
        self.note_removal(file, number, matches!(origin, Origin::Tree(_)));
        if let Some(new) = file.names.target() {
            let path = self.paths.entry(new).or_default();
            path.seen_as = PathStatus::Result(number);
            if file.claim != Claim::Delete
                && let Some(superseded) = path.written.replace(number)
            {
                let content =
                    mem::replace(&mut self.results[superseded].after.content, Content::Bytes(Vec::new()));
                self.result_bytes -= content.held_bytes();
            }
        }
        if let Some(old) = file.names.source()
            && (file.names.target().is_none() || file.claim == Claim::Rename)
        {
            self.paths.entry(old).or_default().seen_as = PathStatus::Removed;
        }
        self.results.push(outcome);
        Ok(())
    }

    fn note_removal(&mut self, file: &'p FileDiff, section: usize, is_in_tree: bool) {
        let prunes = matches!(file.claim, Claim::Delete | Claim::Rename);
        let moves = matches!(file.claim, Claim::Edit | Claim::EditOrCreate) && !is_in_place(file);
        if let Some(old) = file.names.source()
            && (prunes || moves)
        {
            let removal = self.removals.entry(old).or_default();
            *removal = Removal { section, prunes, is_in_tree: removal.is_in_tree || is_in_tree };
        }
    }

    fn grow(&mut self, outcome: &SectionOutcome<'_>) -> Result<(), PlanError> {
        self.result_bytes += outcome.after.content.held_bytes();
        if self.result_bytes > self.max_result_bytes {
            return Err(PlanError::TooLarge { line: outcome.file.line, max: self.max_result_bytes });
        }
        Ok(())
    }

    /// The removal of a file that is in the tree and won't be written again.
    pub(super) fn final_removal(&self, path: &RelativeName) -> Option<Removal> {
        let is_written = self.paths.get(path).is_some_and(|path| path.written.is_some());
        self.removals.get(path).copied().filter(|removal| removal.is_in_tree && !is_written)
    }

    /// Returns true if the result of section `number` is the final content of its new name.
    pub(super) fn is_final(&self, number: usize, new: &RelativeName) -> bool {
        self.paths.get(new).is_some_and(|path| path.written == Some(number))
    }

    fn is_deleted_by(&self, number: usize, file: &FileDiff, old: &RelativeName) -> bool {
        let removal = self.final_removal(old);
        file.claim == Claim::Delete && removal.is_some_and(|removal| removal.section == number)
    }

    /// Combines the results of all sections.
    pub(super) fn into_plan(mut self) -> Plan {
        let mut removed: Vec<(usize, RelativeName)> = Vec::new();
        for path in self.removals.keys() {
            if let Some(removal) = self.final_removal(path) {
                removed.push((removal.section, (*path).clone()));
            }
        }
        removed.sort_unstable();
        let mut changes = Vec::with_capacity(self.results.len());
        for (number, outcome) in mem::take(&mut self.results).into_iter().enumerate() {
            let SectionOutcome { file, what, after, places: hunks, .. } = outcome;
            match (file.names.target(), file.names.source()) {
                (Some(new), _) if self.is_final(number, new) => {
                    changes.push(Change { path: new.clone(), what, after: Some(after), hunks });
                }
                (_, Some(old)) if self.is_deleted_by(number, file, old) => {
                    changes.push(Change {
                        path: old.clone(),
                        what: FileChangeKind::Deleted,
                        after: None,
                        hunks,
                    });
                }
                _ => {}
            }
        }
        Plan { changes, removed: removed.into_iter().map(|(_, path)| path).collect() }
    }
}

// === impl SectionOutcome ===

impl<'p> SectionOutcome<'p> {
    pub(super) fn new(
        file: &'p FileDiff,
        after: ResultingFile,
        places: Vec<HunkPlace>,
        there: Option<FileTreeEntryKind>,
    ) -> Self {
        let is_replaced = matches!(there, Some(FileTreeEntryKind::File(_)));
        let what = match (file.claim, file.names.source()) {
            (Claim::Rename, Some(old)) => FileChangeKind::Renamed { from: old.clone() },
            (Claim::Copy, Some(old)) => FileChangeKind::Copied { from: old.clone() },
            (Claim::Edit | Claim::EditOrCreate, Some(old)) if !is_in_place(file) => {
                FileChangeKind::Renamed { from: old.clone() }
            }
            (Claim::Edit, _) if places.is_empty() => FileChangeKind::ModeChanged,
            (Claim::Delete, _) => FileChangeKind::Deleted,
            _ if is_replaced => FileChangeKind::Modified,
            _ => FileChangeKind::Created,
        };
        Self { file, what, after, places, there }
    }

    /// Makes this the sum of an earlier section and this one, both about the same file.
    fn continue_from(&mut self, earlier: &mut Self) {
        let changes_text = !self.places.is_empty();
        let later = mem::replace(&mut self.places, mem::take(&mut earlier.places));
        self.places.extend(later);
        self.what = match &earlier.what {
            FileChangeKind::ModeChanged if changes_text => FileChangeKind::Modified,
            FileChangeKind::Deleted => FileChangeKind::Modified,
            what => what.clone(),
        };
    }
}

// === impl Content ===

impl Content {
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Before(_) => 0,
        }
    }
}

fn is_in_place(file: &FileDiff) -> bool {
    file.names.source() == file.names.target()
}
