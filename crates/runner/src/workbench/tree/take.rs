//! Sending a tree. Links are not followed, and the content of `.git` is left out; any entry that can't be sent is an
//! error.

use super::tell;
use crate::deadline::Deadline;
use crate::directory::{Directory, PathError};
use crate::walk::{self, WalkEntry, WalkError, WalkOptions};
use crate::workbench::refused;
use belljar_contract::path::WorkspacePath;
use belljar_contract::result::output::EntryKind;
use belljar_contract::workbench::{Bytes, RefusalReason, RequestRefusal, TreeLine};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Sends the entries below a directory.
pub(super) fn take(
    path: &WorkspacePath,
    workspace: &Directory,
    to: &mut impl Write,
    deadline: &Deadline<'_>,
) -> Result<(), RequestRefusal> {
    let top = workspace.subdirectory(Path::new(path.as_str())).map_err(|error| refused(&error))?;
    let route = WalkOptions { max_depth: usize::MAX, targets: true, sizes: false, read_ahead_after: None };
    let mut taken = Ok(());
    let missed = walk::walk(&top, route, deadline, |met| {
        if is_in_git(met.path) {
            return ControlFlow::Continue(());
        }
        taken = one(&top, met, to);
        if taken.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    taken?;
    let missed = missed.map_err(|error| match error {
        WalkError::Path(error) => refused(&error),
        WalkError::Interrupted(interrupted) => {
            RequestRefusal::new(RefusalReason::Failed, interrupted.to_string())
        }
    })?;
    // A partial tree would look as if files had been removed.
    match (missed.too_much, missed.unreadable) {
        (true, _) => Err(RequestRefusal::new(
            RefusalReason::TooLarge,
            "a directory has too many entries, or the tree is too deep",
        )),
        (_, 1..) => Err(RequestRefusal::new(RefusalReason::Failed, "some directories cannot be read")),
        _ => Ok(()),
    }
}

fn one(top: &Directory, met: &WalkEntry<'_>, to: &mut impl Write) -> Result<(), RequestRefusal> {
    let path = || Bytes(met.path.to_vec());
    let told = match (met.kind, met.target) {
        (EntryKind::Directory, _) => tell(to, &TreeLine::Directory { path: path() }),
        (EntryKind::File, _) => return file(top, met.path, to),
        (EntryKind::Symlink, Some(target)) => {
            tell(to, &TreeLine::Link { path: path(), target: Bytes(target.to_vec()) })
        }
        _ => tell(to, &TreeLine::Other { path: path() }),
    };
    told.map_err(|error| super::failed("send the tree", &error))
}

fn file(top: &Directory, path: &[u8], to: &mut impl Write) -> Result<(), RequestRefusal> {
    let place = Path::new(OsStr::from_bytes(path));
    let mut file = match top.open_listed_file(place) {
        // An entry that was removed meanwhile is skipped.
        Err(error) if error.is_absent() => return Ok(()),
        opened => opened.map_err(|error: PathError| refused(&error))?,
    };
    let mut told = || -> io::Result<()> {
        let (metadata, size_bytes) = (file.file.metadata()?, file.size_bytes);
        let is_executable = metadata.permissions().mode() & 0o100 != 0;
        tell(to, &TreeLine::File { path: Bytes(path.to_vec()), is_executable, size_bytes })?;
        match io::copy(&mut (&mut file.file).take(size_bytes), to)? {
            told if told == size_bytes => Ok(()),
            _ => Err(io::Error::other("it changed while it was read")),
        }
    };
    told().map_err(|error| super::failed(&format!("send {}", place.display()), &error))
}

/// Returns true if the path is inside a repository's own directory; that directory itself is reported.
fn is_in_git(path: &[u8]) -> bool {
    let mut above = path.split(|byte| *byte == b'/').rev();
    above.next();
    above.any(|name| name == b".git")
}
