//! Checks that every new file has directories above it and no directory in its place.

use std::collections::HashSet;

use super::outcome::Removal;
use super::section::{not_a_file, unfit, unreadable};
use super::tree::{FileTree, FileTreeEntryKind};
use super::{PlanError, Planner, SectionMismatch};
use crate::patch::name::RelativeName;
use crate::patch::parse::FileDiff;

/// State of a directory once all removals are done.
enum DirectoryEmptiness {
    /// Something is left in it.
    No,
    /// There has never been anything in it.
    Already,
    /// This was the last removal in it.
    By(Removal),
}

// === impl Planner ===

impl<'p, T: FileTree> Planner<'p, T> {
    /// Checks the whole result once all sections are planned.
    pub(super) fn check_layout(&mut self) -> Result<(), PlanError> {
        let mut destinations = Vec::new();
        let mut all_in_place = true;
        for (number, outcome) in self.results.iter().enumerate() {
            if let Some(new) = outcome.file.names.target()
                && self.is_final(number, new)
            {
                all_in_place &= matches!(outcome.there, Some(FileTreeEntryKind::File(_)));
                destinations.push((outcome.file, new, outcome.there));
            }
        }
        if all_in_place {
            return Ok(());
        }
        let mut directories = HashSet::new();
        for (file, new, there) in destinations {
            self.check_above(file, new, &mut directories)?;
            if there == Some(FileTreeEntryKind::Directory) && !self.makes_room(new)? {
                return Err(unfit(file, new, SectionMismatch::Directory));
            }
        }
        Ok(())
    }

    /// No file, of the tree or of the patch, may be where a directory is needed.
    fn check_above(
        &mut self,
        file: &FileDiff,
        new: &RelativeName,
        directories: &mut HashSet<RelativeName>,
    ) -> Result<(), PlanError> {
        // From the inside out: above a directory that was looked at, all have been.
        let mut below = new.clone();
        while let Some(above) = below.parent() {
            if directories.contains(&above) {
                break;
            }
            if self.paths.get(&above).is_some_and(|path| path.written.is_some()) {
                return Err(unfit(file, new, SectionMismatch::FileAbove { file: above }));
            }
            match self.look_up(file, &above)? {
                None | Some(FileTreeEntryKind::Directory) => {}
                Some(FileTreeEntryKind::File(_)) if self.final_removal(&above).is_some() => {}
                Some(FileTreeEntryKind::File(_)) => {
                    return Err(unfit(file, new, SectionMismatch::FileAbove { file: above }));
                }
                Some(kind) => return Err(not_a_file(file, &above, kind)),
            }
            directories.insert(above.clone());
            below = above;
        }
        Ok(())
    }

    /// Returns true if a file may take the place of `directory`.
    fn makes_room(&mut self, directory: &RelativeName) -> Result<bool, PlanError> {
        Ok(!matches!(self.emptied(directory)?, DirectoryEmptiness::No))
    }

    fn emptied(&mut self, directory: &RelativeName) -> Result<DirectoryEmptiness, PlanError> {
        let children = self.tree.children(directory).map_err(|source| unreadable(directory, source))?;
        let mut last: Option<Removal> = None;
        for child in children {
            // A patch can't have removed what it can't name.
            let Some(child) = directory.join(&child) else { return Ok(DirectoryEmptiness::No) };
            let Some(removal) = self.removal_of(&child)? else { return Ok(DirectoryEmptiness::No) };
            if last.is_none_or(|last| last.section < removal.section) {
                last = Some(removal);
            }
        }
        Ok(last.map_or(DirectoryEmptiness::Already, DirectoryEmptiness::By))
    }

    /// The last removal that made `path` disappear.
    fn removal_of(&mut self, path: &RelativeName) -> Result<Option<Removal>, PlanError> {
        match self.tree.kind(path).map_err(|source| unreadable(path, source))? {
            Some(FileTreeEntryKind::Directory) => match self.emptied(path)? {
                // An empty directory only goes when something in it did, by way of a deletion or rename.
                DirectoryEmptiness::By(removal) if removal.prunes => Ok(Some(removal)),
                _ => Ok(None),
            },
            _ => Ok(self.final_removal(path)),
        }
    }
}
