//! Receiving a tree: it is created beside its place first, so that it appears completely or not at all.

use crate::directory::Directory;
use crate::workbench::refused;
use belljar_contract::path::WorkspacePath;
use belljar_contract::workbench::{Bytes, LONGEST_TREE_LINE_BYTES, RefusalReason, RequestRefusal, TreeLine};
use rustix::fs::{Mode, OFlags, mkdirat, openat, renameat, symlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Creates the received tree, in a directory that doesn't exist or is empty.
pub(super) fn put(
    path: &WorkspacePath,
    workspace: &Directory,
    from: &mut impl BufRead,
) -> Result<(), RequestRefusal> {
    if path.is_root() {
        let said = "the tree cannot be put into the workspace root: specify a directory below it";
        return Err(RequestRefusal::new(RefusalReason::Invalid, said));
    }
    let place = Path::new(path.as_str());
    workspace.make_parents(place).map_err(|error| refused(&error))?;
    let (parent, name) = workspace.locate_parent(place).map_err(|error| refused(&error))?;
    let part = format!(".belljar-tree-{}", uuid::Uuid::new_v4());
    mkdirat(&parent, &part, Mode::from_raw_mode(0o777)).map_err(|errno| not_made(path, errno))?;
    let beside = place.with_file_name(&part);
    let made = workspace
        .subdirectory(&beside)
        .map_err(|error| refused(&error))
        .and_then(|top| make(&top, from))
        .and_then(|()| renameat(&parent, &part, &parent, name).map_err(|errno| not_made(path, errno)));
    made.inspect_err(|_| {
        // Removal goes by the descriptor, because another process may have replaced the path. If it fails, a person has
        // to clean up.
        let _ = std::fs::remove_dir_all(format!("/proc/self/fd/{}/{part}", parent.as_raw_fd()));
    })
}

fn make(top: &Directory, from: &mut impl BufRead) -> Result<(), RequestRefusal> {
    loop {
        match line(from)? {
            TreeLine::Directory { path } => {
                put_one(top, &path, |parent, name| Ok(mkdirat(parent, name, Mode::from_raw_mode(0o777))?))?;
            }
            TreeLine::File { path, is_executable, size_bytes } => {
                let mode = if is_executable { 0o777 } else { 0o666 };
                put_one(top, &path, |parent, name| {
                    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                    let made = openat(parent, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(mode))?;
                    match io::copy(&mut from.by_ref().take(size_bytes), &mut File::from(made))? {
                        copied if copied == size_bytes => Ok(()),
                        _ => Err(io::ErrorKind::UnexpectedEof.into()),
                    }
                })?;
            }
            TreeLine::Link { path, target } => put_one(top, &path, |parent, name| {
                Ok(symlinkat(OsStr::from_bytes(&target.0), parent, name)?)
            })?,
            TreeLine::End {} => return Ok(()),
            TreeLine::Other { .. } | TreeLine::Refused(_) => return Err(not_a_line()),
        }
    }
}

fn put_one(
    top: &Directory,
    path: &Bytes,
    put: impl FnOnce(&rustix::fd::OwnedFd, &Path) -> io::Result<()>,
) -> Result<(), RequestRefusal> {
    let path = Path::new(OsStr::from_bytes(&path.0));
    let (parent, name) = top.locate_parent(path).map_err(|error| refused(&error))?;
    put(&parent, name).map_err(|error| {
        let is_full = Errno::from_io_error(&error)
            .is_some_and(|errno| matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG));
        let why = if is_full { RefusalReason::TooLarge } else { RefusalReason::Failed };
        RequestRefusal::new(why, format!("can't make {}: {error}", path.display()))
    })
}

fn line(from: &mut impl BufRead) -> Result<TreeLine, RequestRefusal> {
    let mut bytes = Vec::new();
    let read = from.take(LONGEST_TREE_LINE_BYTES as u64).read_until(b'\n', &mut bytes);
    read.map_err(|error| super::failed("read the tree", &error))?;
    serde_json::from_slice(&bytes).map_err(|_| not_a_line())
}

fn not_a_line() -> RequestRefusal {
    RequestRefusal::new(RefusalReason::Invalid, "the received tree is malformed or incomplete")
}

fn not_made(path: &WorkspacePath, errno: Errno) -> RequestRefusal {
    match errno {
        Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR => RequestRefusal::new(
            RefusalReason::Exists,
            format!("{path} already exists and is not an empty directory"),
        ),
        errno => super::failed(&format!("make {path}"), &errno.into()),
    }
}
