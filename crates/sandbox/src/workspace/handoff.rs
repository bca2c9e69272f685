//! What of a change set gains trust in the tree that it is applied to (`policy::handoff`).

mod inflate;
mod links;
mod obeyed;
mod objects;

use super::changes::{ChangeSet, State};
use crate::directory::{Directory, DirectoryError};
use belljar_policy::handoff::{self as policy, Entry, Finding, HandoffKind, Touched};
use objects::ObjectCheck;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;

/// What was looked at.
#[derive(Debug)]
pub struct Reviewed {
    /// The paths that take somebody's yes.
    pub findings: Vec<Finding>,
    /// Where links lead that were looked at: somebody may have made them lead elsewhere since.
    pub(super) links: Links,
}

/// What links say, by their paths.
pub(super) type Links = BTreeMap<PathBuf, CString>;

/// Looks at a change set by its names, by the links of the target that lead to them, and by what the host obeys at the moment.
///
/// # Errors
/// [`DirectoryError`] for a path that can't be looked at.
pub fn review(set: &ChangeSet, copy: &Directory, target: &Directory) -> Result<Reviewed, DirectoryError> {
    let (mut findings, mut links) = (Vec::new(), Links::new());
    if set.is_empty() {
        return Ok(Reviewed { findings, links });
    }
    let within = links::find(target)?;
    if let (None, Some((path, _))) = (&within, set.iter().next()) {
        let (path, kind) = (path.to_string_lossy().into_owned(), HandoffKind::Link);
        let reason =
            "the directory has too many names to find the links that lead to what was changed".into();
        findings.push(Finding { path, kind, reason });
    }
    let within = within.unwrap_or_default();
    let mut objects = ObjectCheck::new();
    for (path, changed) in set.iter() {
        // What it was where it goes says enough by its kind; where its link has led doesn't count any more.
        let before = changed.before.map(|before| entry(before, String::new()));
        let after = match changed.after {
            Some(after) if after.kind == FileType::Symlink => {
                let says = copy.read_link(path)?;
                let target = says.to_string_lossy().into_owned();
                links.insert(path.to_owned(), says);
                Some(entry(after, target))
            }
            after => after.map(|after| entry(after, String::new())),
        };
        let is_new_file = changed.before.is_none()
            && changed.after.is_some_and(|after| after.kind == FileType::RegularFile);
        let is_new_git_object = is_new_file && objects.holds(copy, path);
        let touched = Touched { path: &path.to_string_lossy(), before, after, is_new_git_object };
        findings.extend(policy::review_with_links([touched], &within));
    }
    findings.extend(obeyed::find(set, target)?);
    Ok(Reviewed { findings, links })
}

fn entry(state: State, target: String) -> Entry {
    match state.kind {
        FileType::RegularFile => Entry::File { is_executable: state.mode & 0o111 != 0 },
        FileType::Symlink => Entry::Link { target },
        _ => Entry::Other,
    }
}

#[cfg(test)]
mod tests;
