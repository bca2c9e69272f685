//! Plans one file section.

use std::borrow::Cow;

use super::outcome::SectionOutcome;
use super::tree::{FileTree, FileTreeEntry, FileTreeEntryKind};
use super::{Content, PathStatus, PlanError, Planner, ResultingFile, SectionMismatch};
use crate::patch::apply::{ApplyError, HunkPlace, apply};
use crate::patch::mode::FileMode;
use crate::patch::name::RelativeName;
use crate::patch::parse::{Claim, FileDiff};
use crate::patch::refusal::Refusal;
use crate::patch::work::{WorkBudgetExhausted, steps_for_bytes};

/// The file that a section starts from.
pub(super) struct Source {
    mode: FileMode,
    pub(super) origin: Origin,
}

/// Origin of a section's source.
pub(super) enum Origin {
    /// In the tree; the bytes only if the section needs them.
    Tree(Option<Vec<u8>>),
    /// In what an earlier section made.
    Result(usize),
    /// Nowhere: the section creates a file.
    Nothing,
}

// === impl Planner ===

impl<'p, T: FileTree> Planner<'p, T> {
    /// Notes which paths the patch removes, since a section may create what a later one makes room for.
    pub(super) fn announce_removals(&mut self) {
        for file in self.patch.files() {
            if let Some(old) = file.names.source()
                && (file.names.target().is_none() || file.claim == Claim::Rename)
            {
                self.paths.entry(old).or_default().seen_as = PathStatus::ToBeRemoved;
            }
        }
    }

    /// Plans `file`, given what the sections before it made.
    pub(super) fn section(&mut self, file: &'p FileDiff) -> Result<(), PlanError> {
        let source = self.source(file)?;
        let there = self.check_destination(file, &source)?;
        let mode = file.new_mode.unwrap_or(source.mode);
        let (content, places) = self.content(file, &source)?;
        if file.claim == Claim::Delete && content != Content::Bytes(Vec::new()) {
            return Err(unfit(file, file.names.first(), SectionMismatch::Remains));
        }
        self.record(SectionOutcome::new(file, ResultingFile { mode, content }, places, there), &source.origin)
    }

    fn source(&mut self, file: &FileDiff) -> Result<Source, PlanError> {
        let Some(old) = file.names.source() else {
            return Ok(Source { mode: FileMode::default(), origin: Origin::Nothing });
        };
        // Renames and copies don't depend on the order of sections.
        let seen_as = match file.claim {
            Claim::Rename | Claim::Copy => PathStatus::Before,
            _ => self.seen_as(old),
        };
        match seen_as {
            PathStatus::Removed => Err(unfit(file, old, SectionMismatch::Gone)),
            PathStatus::Result(number) => {
                Ok(Source { mode: self.results[number].after.mode, origin: Origin::Result(number) })
            }
            PathStatus::Before | PathStatus::ToBeRemoved => self.source_in_tree(file, old),
        }
    }

    fn source_in_tree(&mut self, file: &FileDiff, old: &RelativeName) -> Result<Source, PlanError> {
        let (kind, bytes) = if self.needs_bytes(file) {
            match self.tree.read(old).map_err(|source| unreadable(old, source))? {
                Some(FileTreeEntry::File { mode, bytes }) => {
                    (Some(FileTreeEntryKind::File(mode)), Some(bytes))
                }
                entry => (entry.map(|entry| entry.kind()), None),
            }
        } else {
            (self.tree.kind(old).map_err(|source| unreadable(old, source))?, None)
        };
        match kind {
            Some(FileTreeEntryKind::File(mode)) => Ok(Source { mode, origin: Origin::Tree(bytes) }),
            Some(kind) => Err(not_a_file(file, old, kind)),
            None if file.claim == Claim::EditOrCreate => {
                self.check_absence(file, old)?;
                Ok(Source { mode: FileMode::default(), origin: Origin::Nothing })
            }
            None => Err(unfit(file, old, SectionMismatch::Missing)),
        }
    }

    /// Checks that a missing file isn't below another file. Such a path isn't merely missing, even if the patch removes
    /// that file.
    fn check_absence(&mut self, file: &FileDiff, old: &RelativeName) -> Result<(), PlanError> {
        let mut below = old.clone();
        while let Some(above) = below.parent() {
            if let Some(FileTreeEntryKind::File(_)) = self.look_up(file, &above)? {
                return Err(unfit(file, old, SectionMismatch::FileAbove { file: above }));
            }
            below = above;
        }
        Ok(())
    }

    /// Checks that the new file may be put where it's meant to go; returns what is there now.
    fn check_destination(
        &mut self,
        file: &FileDiff,
        source: &Source,
    ) -> Result<Option<FileTreeEntryKind>, PlanError> {
        let Some(new) = file.names.target() else { return Ok(None) };
        let is_edited_in_place =
            file.names.source() == Some(new) && matches!(file.claim, Claim::Edit | Claim::EditOrCreate);
        if is_edited_in_place && matches!(source.origin, Origin::Tree(_)) {
            return Ok(Some(FileTreeEntryKind::File(source.mode)));
        }
        let there = self.tree.kind(new).map_err(|source| unreadable(new, source))?;
        if let Some(kind @ (FileTreeEntryKind::Symlink | FileTreeEntryKind::Special)) = there {
            return Err(not_a_file(file, new, kind));
        }
        let must_be_free = match file.claim {
            Claim::Create | Claim::Rename | Claim::Copy => true,
            Claim::EditOrCreate => matches!(source.origin, Origin::Nothing),
            Claim::Edit | Claim::Delete => false,
        };
        let has_room = matches!(self.seen_as(new), PathStatus::Removed | PathStatus::ToBeRemoved);
        // Whether a directory is in the way is settled when all removals are known.
        if must_be_free && !has_room && matches!(there, Some(FileTreeEntryKind::File(_))) {
            return Err(unfit(file, new, SectionMismatch::Exists));
        }
        Ok(there)
    }

    /// Returns the new content that a section makes of its source, and the places of its hunks.
    fn content(&mut self, file: &FileDiff, source: &Source) -> Result<(Content, Vec<HunkPlace>), PlanError> {
        let before = match &source.origin {
            Origin::Nothing => Cow::Borrowed(&[][..]),
            Origin::Tree(Some(bytes)) => Cow::Borrowed(&bytes[..]),
            Origin::Tree(None) => return Ok((Content::Before(file.names.first().clone()), Vec::new())),
            Origin::Result(number) => match &self.results[*number].after.content {
                content if !self.needs_bytes(file) => {
                    let content = content.clone();
                    self.spend(file, steps_for_bytes(content.held_bytes()))?;
                    return Ok((content, Vec::new()));
                }
                Content::Bytes(bytes) => Cow::Borrowed(&bytes[..]),
                Content::Before(name) => {
                    match self.tree.read(name).map_err(|source| unreadable(name, source))? {
                        Some(FileTreeEntry::File { bytes, .. }) => Cow::Owned(bytes),
                        // It was a file a moment ago: another process changes the tree.
                        _ => return Err(unfit(file, name, SectionMismatch::Missing)),
                    }
                }
            },
        };
        let too_much = |WorkBudgetExhausted| PlanError::TooMuchWork { line: file.line };
        self.budget.spend(steps_for_bytes(before.len())).map_err(too_much)?;
        match apply(&before, self.patch.hunks(file), &mut self.budget) {
            Ok(applied) => Ok((Content::Bytes(applied.bytes), applied.places)),
            Err(ApplyError::TooMuchWork { diff_line }) => Err(PlanError::TooMuchWork { line: diff_line }),
            Err(reason) => Err(unfit(file, file.names.first(), SectionMismatch::Hunk(reason))),
        }
    }

    /// Looks up a directory above some file. This is charged as work, because a few very deep names could cost very
    /// many look-ups.
    pub(super) fn look_up(
        &mut self,
        file: &FileDiff,
        above: &RelativeName,
    ) -> Result<Option<FileTreeEntryKind>, PlanError> {
        const STEPS_PER_CALL: usize = 128;
        const STEPS_PER_BYTE: usize = 4;
        self.spend(file, STEPS_PER_CALL + STEPS_PER_BYTE * above.as_str().len())?;
        self.tree.kind(above).map_err(|source| unreadable(above, source))
    }

    fn spend(&mut self, file: &FileDiff, steps: usize) -> Result<(), PlanError> {
        self.budget.spend(steps).map_err(|WorkBudgetExhausted| PlanError::TooMuchWork { line: file.line })
    }

    /// Hunks need the source's bytes, and a deletion needs to know that none are left.
    fn needs_bytes(&self, file: &FileDiff) -> bool {
        !self.patch.hunks(file).is_empty() || file.claim == Claim::Delete
    }

    fn seen_as(&self, path: &RelativeName) -> PathStatus {
        self.paths.get(path).map_or(PathStatus::Before, |path| path.seen_as)
    }
}

pub(super) fn unfit(file: &FileDiff, path: &RelativeName, reason: SectionMismatch) -> PlanError {
    PlanError::Unfit { line: file.line, path: path.clone(), reason }
}

pub(super) fn not_a_file(file: &FileDiff, path: &RelativeName, kind: FileTreeEntryKind) -> PlanError {
    let reason = match kind {
        FileTreeEntryKind::Symlink => Refusal::Symlink,
        FileTreeEntryKind::Special => Refusal::SpecialFile,
        FileTreeEntryKind::Directory | FileTreeEntryKind::File(_) => Refusal::Directory,
    };
    PlanError::Refused { line: file.line, path: path.clone(), reason }
}

pub(super) fn unreadable(path: &RelativeName, source: std::io::Error) -> PlanError {
    PlanError::Io { path: path.clone(), source }
}
