//! The parts of a change that reach the directory that it is applied to: files, directories and links, and of their
//! permission bits the executable one, as in git.
//!
//! Pipes, sockets and devices are no part of a workspace: a program of the host that opens such a file blocks, or talks to
//! another process. One in the place of a file is the deletion of that file.
//!
//! A sandbox can give its files any permissions. Taking them over would open a private file or directory of the host to other local
//! users, which no diff shows. So a file that exists keeps its permissions, but for the executable bit; a new one gets at most
//! 0644, 0755 if it is executable, less what the sandbox took away, and less what its directory keeps from others.

use super::acl::AccessList;
use super::changes::{PathChange, PathState};
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All bits that make a file executable.
const EXECUTABLE: u32 = 0o111;

/// The permission bits of a file or directory that exists in the source, after the change.
pub(super) fn of_existing(before: PathState, after: PathState) -> u32 {
    let (was, is) = (before.mode & EXECUTABLE != 0, after.mode & EXECUTABLE != 0);
    if after.kind == FileType::Directory || was == is {
        return before.mode;
    }
    match is {
        // Executable for those who may read it.
        true => before.mode | (before.mode & 0o444) >> 2 | 0o100,
        false => before.mode & !EXECUTABLE,
    }
}

/// Returns what a change makes of a file that is `now` in the target: if the run left the executable bit as it was, so does
/// the change.
pub(super) fn rebased(before: Option<PathState>, after: PathState, now: Option<PathState>) -> PathState {
    let is_file = |state: &PathState| state.kind == FileType::RegularFile;
    let (Some(before), Some(now), true) = (before.filter(is_file), now.filter(is_file), is_file(&after))
    else {
        return after;
    };
    let is_kept = (before.mode & EXECUTABLE == 0) == (after.mode & EXECUTABLE == 0);
    PathState { mode: if is_kept { now.mode } else { of_existing(now, after) }, ..after }
}

/// The permission bits of a new file or directory in a directory with the permission bits `parent`.
fn of_new(after: PathState, parent: u32) -> u32 {
    let is_executable = after.kind == FileType::Directory || after.mode & EXECUTABLE != 0;
    let most: u32 = if is_executable { 0o755 } else { 0o644 };
    let group = if parent & 0o010 == 0 { 0 } else { 0o070 };
    let others = if parent & 0o001 == 0 { 0 } else { 0o007 };
    most & 0o700 | most & after.mode & (group | others)
}

/// Leaves what is applied of all changes: no special files, and other permission bits. Changes of which nothing is left are dropped.
pub(super) fn carry(
    changes: &mut BTreeMap<PathBuf, PathChange>,
    source: &Directory,
) -> Result<(), DirectoryError> {
    for changed in changes.values_mut().filter(|changed| changed.after.is_some_and(is_special)) {
        changed.after = None;
        changed.same_content = changed.before.is_none();
    }
    // Parents come before what is in them.
    let mut new_directories: BTreeMap<PathBuf, u32> = BTreeMap::new();
    let mut known_parent: Option<(PathBuf, u32)> = None;
    for (path, changed) in changes.iter_mut() {
        let Some(after) = &mut changed.after else { continue };
        if !matches!(after.kind, FileType::RegularFile | FileType::Directory) {
            continue;
        }
        after.mode = match changed.before {
            Some(before) if before.kind == after.kind => of_existing(before, *after),
            _ => {
                let parent = path.parent().unwrap_or(Path::new(""));
                let mode = match (new_directories.get(parent), &known_parent) {
                    (Some(mode), _) => *mode,
                    (None, Some((known, mode))) if known == parent => *mode,
                    _ => mode_of(source, parent)?,
                };
                known_parent = Some((parent.to_owned(), mode));
                of_new(*after, mode)
            }
        };
        if after.kind == FileType::Directory && changed.before.is_none_or(|before| before.kind != after.kind)
        {
            new_directories.insert(path.clone(), after.mode);
        }
    }
    changes.retain(|_, changed| changed.before != changed.after || !changed.same_content);
    Ok(())
}

fn is_special(state: PathState) -> bool {
    !matches!(state.kind, FileType::RegularFile | FileType::Directory | FileType::Symlink)
}

/// Returns the permission bits of a directory. Rights that its own access control list gives to others than its owning
/// group don't count for the group.
fn mode_of(source: &Directory, directory: &Path) -> Result<u32, DirectoryError> {
    let opened = match directory.as_os_str().is_empty() {
        true => source.try_clone(),
        false => source.open_place(directory),
    };
    let opened = match opened {
        // A parent that is gone meanwhile is a conflict, which is found later; until then it grants nothing.
        Err(DirectoryError { source: Errno::NOENT | Errno::NOTDIR, .. }) => return Ok(0o700),
        opened => opened?,
    };
    let mode = opened.stat_itself()?.st_mode & 0o777;
    let list = AccessList::of(&opened);
    let list = list.map_err(|source| DirectoryError { path: directory.to_owned(), source })?;
    Ok(list.map_or(mode, |list| mode & !0o070 | list.of_owning_group() << 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(kind: FileType, mode: u32) -> PathState {
        PathState { kind, mode, size: 0 }
    }

    #[test]
    fn existing_files_keep_their_permissions_but_for_the_executable_bit() {
        let file = |before, after| {
            of_existing(state(FileType::RegularFile, before), state(FileType::RegularFile, after))
        };
        for (before, after, expected) in [
            (0o600, 0o666, 0o600),
            (0o600, 0o777, 0o700),
            (0o644, 0o755, 0o755),
            (0o640, 0o755, 0o750),
            (0o444, 0o755, 0o555),
            (0o200, 0o755, 0o300),
            (0o755, 0o644, 0o644),
            (0o750, 0o666, 0o640),
            (0o644, 0o600, 0o644),
            (0o755, 0o711, 0o755),
            (0o644, 0o654, 0o755),
        ] {
            assert_eq!(file(before, after), expected, "{before:o} {after:o}");
        }
        let directory = of_existing(state(FileType::Directory, 0o700), state(FileType::Directory, 0o777));
        assert_eq!(directory, 0o700);
    }

    #[test]
    fn new_files_are_no_wider_than_the_sandbox_made_them_and_than_their_directory() {
        for (after, parent, expected) in [
            (0o666, 0o755, 0o644),
            (0o777, 0o755, 0o755),
            (0o600, 0o755, 0o600),
            (0o700, 0o755, 0o700),
            (0o400, 0o755, 0o600),
            (0o666, 0o700, 0o600),
            (0o777, 0o700, 0o700),
            (0o666, 0o750, 0o640),
            (0o777, 0o705, 0o705),
        ] {
            let file = of_new(state(FileType::RegularFile, after), parent);
            assert_eq!(file, expected, "{after:o} in {parent:o}");
        }
        assert_eq!(of_new(state(FileType::Directory, 0o777), 0o755), 0o755);
        assert_eq!(of_new(state(FileType::Directory, 0o711), 0o711), 0o711);
        assert_eq!(of_new(state(FileType::Directory, 0o777), 0o700), 0o700);
    }
}
