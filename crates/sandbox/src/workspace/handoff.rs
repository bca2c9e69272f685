//! What of a change set gains trust in the tree that it is applied to (`policy::handoff`).

use super::changes::{ChangeSet, State};
use crate::directory::{Directory, DirectoryError};
use belljar_policy::handoff::{Entry, Finding, Touched, review};
use rustix::fs::FileType;
use std::path::Path;

/// The paths that take somebody's yes.
///
/// # Errors
/// [`DirectoryError`] for a link that can't be read.
pub fn findings(set: &ChangeSet, copy: &Directory) -> Result<Vec<Finding>, DirectoryError> {
    let mut findings = Vec::new();
    for (path, changed) in set.iter() {
        // What it was where it goes says enough by its kind; where its link has led doesn't count any more.
        let before = changed.before.map(|before| entry(before, String::new()));
        let after = match changed.after {
            Some(after) => Some(entry(after, target(copy, path, after)?)),
            None => None,
        };
        findings.extend(review([Touched { path: &path.to_string_lossy(), before, after }]));
    }
    Ok(findings)
}

fn entry(state: State, target: String) -> Entry {
    match state.kind {
        FileType::RegularFile => Entry::File { is_executable: state.mode & 0o111 != 0 },
        FileType::Symlink => Entry::Link { target },
        _ => Entry::Other,
    }
}

fn target(copy: &Directory, path: &Path, after: State) -> Result<String, DirectoryError> {
    match after.kind {
        FileType::Symlink => Ok(copy.read_link(path)?.to_string_lossy().into_owned()),
        _ => Ok(String::new()),
    }
}
