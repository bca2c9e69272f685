//! Looks for another name of a file in a directory that a sandbox writes.

use crate::in_use::Identity;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More names than this are not looked at: then a file with several names isn't trusted at all.
const MOST_NAMES: usize = 2_000_000;

/// The other name, or the directory itself if it has too many names to look at.
pub(super) fn find(directory: &Path, wanted: Identity) -> Option<PathBuf> {
    let mut pending = vec![directory.to_owned()];
    let mut names = 0;
    while let Some(below) = pending.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What the host can't read, no sandbox of this user can either.
        let Ok(opened) = openat(CWD, &below, flags, Mode::empty()) else { continue };
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(&opened, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            names += 1;
            if names > MOST_NAMES {
                return Some(directory.to_owned());
            }
            let path = below.join(OsStr::from_bytes(name));
            let Ok(stat) = statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if Identity::of(&stat) == wanted {
                return Some(path);
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                pending.push(path);
            }
        }
    }
    None
}
