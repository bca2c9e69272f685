//! Check that a path of the target was changed by others than the run since the copy was made.
//!
//! ```text
//! there then and now ─► its times are later, or another kind of thing has its name ─► touched
//! there now alone, or then alone                                                   ─► touched
//! there neither in the source nor known from then ─► the list of its directory is older ─► not touched
//!                                                 └► otherwise ─► touched, as nothing proves the contrary
//! a directory on the way was replaced, a program has the file mapped, or a packed reference was moved ─► touched
//! ```

use super::baseline::Baseline;
use super::changes::PathChange;
use super::directories::ReplacedDirectories;
use super::references::MovedReferences;
use super::writable_mappings::MappedFiles;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::{FileType, Stat};
use std::path::Path;

/// Looks for what something else has changed in a target.
pub(super) struct TouchedPaths<'a> {
    target: &'a Directory,
    baseline: &'a Baseline,
    replaced: ReplacedDirectories<'a>,
    mapped: MappedFiles<'a>,
    moved: MovedReferences<'a>,
}

// === impl TouchedPaths ===

impl<'a> TouchedPaths<'a> {
    /// `base` is the tree that the run began with, if it is apart from the target.
    pub(super) fn in_target(
        (target, base): (&'a Directory, Option<&'a Directory>),
        baseline: &'a Baseline,
    ) -> Self {
        Self {
            target,
            baseline,
            replaced: ReplacedDirectories::in_target(target, baseline),
            mapped: MappedFiles::in_target(target),
            moved: MovedReferences::in_target((target, base), baseline),
        }
    }

    /// Returns true if a path of the target was touched, judged by its times. `changed` is relative to the target as it is.
    pub(super) fn is_touched(
        &mut self,
        (path, changed): (&Path, &PathChange),
        now: Option<&Stat>,
    ) -> Result<bool, DirectoryError> {
        let is_touched = match (now, changed.before) {
            (Some(now), Some(before)) => {
                let is_directory = before.kind == FileType::Directory;
                FileType::from_raw_mode(now.st_mode) != before.kind
                    || (!is_directory && self.baseline.is_touched(path, now))
            }
            (None, None) => changed.after.is_some() && self.was_removed(path)?,
            _ => true,
        };
        Ok(is_touched || self.is_touched_unseen((path, changed), now)?)
    }

    /// Returns true if a path of the target was touched in a way that neither its times nor its content show.
    pub(super) fn is_touched_unseen(
        &mut self,
        (path, changed): (&Path, &PathChange),
        now: Option<&Stat>,
    ) -> Result<bool, DirectoryError> {
        let is_hidden = match now {
            None => changed.after.is_some() && self.moved.is_moved(path)?,
            Some(now) => {
                let is_file = FileType::from_raw_mode(now.st_mode) == FileType::RegularFile;
                is_file && !changed.same_content && self.mapped.has(now)
            }
        };
        Ok(is_hidden || self.replaced.leads_to(path)?)
    }

    /// Returns true if something was at a path that holds nothing now, or may have been.
    fn was_removed(&self, path: &Path) -> Result<bool, DirectoryError> {
        if let Some(had) = self.baseline.had(path) {
            return Ok(had);
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let stat = match parent.as_os_str().is_empty() {
            true => Some(self.target.stat_itself()?),
            false => self.target.stat(parent)?,
        };
        match stat {
            Some(stat) => Ok(self.baseline.is_list_touched(parent, &stat)),
            None => self.was_removed(parent),
        }
    }
}
