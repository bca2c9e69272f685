//! Lists a directory.
//!
//! The content of a `.git` directory is not shown unless that is what is listed: it is large and of no use to agents.

use super::{beneath, refused};
use crate::deadline::Deadline;
use crate::directory::Directory;
use crate::glob::Glob;
use crate::walk::{self, WalkEntry, WalkError, WalkOptions};
use belljar_contract::path::WorkspacePath;
use belljar_contract::result::output::EntryKind;
use belljar_contract::text::escaped;
use belljar_contract::workbench::{
    Answer, DirectoryContents, DirectoryEntry, ListDirectory, MOST_ENTRIES, RefusalReason, RequestRefusal,
};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(super) fn list(
    list: &ListDirectory,
    workspace: &Directory,
    deadline: &Deadline<'_>,
) -> Result<Answer, RequestRefusal> {
    let path = beneath(&list.path)?;
    let pattern = list.pattern.as_deref().map(|pattern| read_pattern(pattern, list.recursive)).transpose()?;
    let root = workspace.subdirectory(Path::new(path.as_str())).map_err(|error| refused(&error))?;
    let depth = list.pattern.as_deref().map_or(1, |pattern| pattern.split('/').count());
    let route = WalkOptions {
        max_depth: if list.recursive { usize::MAX } else { depth },
        targets: true,
        sizes: true,
        read_ahead_after: Some(walk::WORTH_A_THREAD),
    };
    let shows_git = path.as_str().split('/').any(|name| name == ".git");
    let (mut entries, mut is_full) = (Vec::new(), false);
    let missed = walk::walk(&root, route, deadline, |met| {
        let is_shown = shows_git || !is_in_git(met.path);
        if !is_shown || pattern.as_ref().is_some_and(|pattern| !pattern.matches(met.path)) {
            return ControlFlow::Continue(());
        }
        if entries.len() == MOST_ENTRIES {
            is_full = true;
            return ControlFlow::Break(());
        }
        entries.push(entry(met, (workspace, &path)));
        ControlFlow::Continue(())
    });
    let missed = missed.map_err(|error| match error {
        WalkError::Path(error) => refused(&error),
        WalkError::Interrupted(interrupted) => {
            RequestRefusal::new(RefusalReason::Failed, interrupted.to_string())
        }
    })?;
    let unreadable_directories = missed.unreadable;
    Ok(Answer::Listed(DirectoryContents {
        entries,
        truncated: is_full || missed.too_much,
        unreadable_directories,
    }))
}

/// Parses a pattern that stays in the directory, and goes no deeper than requested.
fn read_pattern(pattern: &str, is_recursive: bool) -> Result<Glob, RequestRefusal> {
    let invalid = |said: String| RequestRefusal::new(RefusalReason::Invalid, said);
    let parts = || pattern.split('/');
    if pattern.is_empty() || pattern.starts_with('/') || parts().any(|part| part == ".." || part.is_empty()) {
        return Err(invalid("a pattern must be relative and must not contain `..`".to_owned()));
    }
    if pattern.contains("**") && !is_recursive {
        return Err(invalid("`**` requires `recursive: true`".to_owned()));
    }
    let glob = if is_recursive { Glob::of_names_or_paths(pattern) } else { Glob::of_paths(pattern) };
    glob.map_err(|error| invalid(error.to_string()))
}

fn is_in_git(path: &[u8]) -> bool {
    let mut above = path.split(|byte| *byte == b'/').rev();
    above.next();
    above.any(|name| name == b".git")
}

fn entry(met: &WalkEntry<'_>, (workspace, listed): (&Directory, &WorkspacePath)) -> DirectoryEntry {
    let is_link = met.kind == EntryKind::Symlink;
    let whole = Path::new(listed.as_str()).join(OsStr::from_bytes(met.path));
    DirectoryEntry {
        path: escaped(met.path),
        kind: met.kind,
        size_bytes: met.size_bytes,
        target: met.target.map(escaped),
        leads_out: is_link && workspace.leads_out(&whole),
    }
}
