//! State of a copy when it was made. Its source may go on changing: a file that is in the copy as it was is not a change.
//!
//! An untouched file is recognised by its inode and its change time (ctime), which no program inside can set. A write
//! through a mapping shows there late. So the record counts only where the source differs from its earlier state: a
//! difference that the source has not made is the copy's.

use super::baseline;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// State of everything in a copy, as it was made.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<u8>, CopiedFileState)>", into = "Vec<(Vec<u8>, CopiedFileState)>")]
pub struct Imprint {
    marks: BTreeMap<PathBuf, CopiedFileState>,
}

/// State in which a file was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CopiedFileState {
    copy: InodeStamp,
    source: InodeStamp,
}

/// Evidence that a file was not touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum InodeStamp {
    /// The entries of a directory are compared by themselves.
    Directory {
        inode: u64,
        mode: u32,
    },
    Other {
        inode: u64,
        size: i64,
        changed_at: (i64, i64),
    },
}

// === impl Imprint ===

impl Imprint {
    /// Notes a copied file: its current state, and its source's.
    pub(super) fn note(&mut self, path: &Path, copy: &Stat, source: &Stat) {
        let mark = CopiedFileState { copy: InodeStamp::of(copy), source: InodeStamp::of(source) };
        self.marks.insert(path.strip_prefix(".").unwrap_or(path).to_owned(), mark);
    }

    /// Takes these paths for copied as they are now: they are again what they are in the source.
    pub(crate) fn renew<'p>(
        &mut self,
        (copy, source): (&Directory, &Directory),
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), DirectoryError> {
        for path in paths {
            match (copy.stat(path)?, source.stat(path)?) {
                (Some(copied), Some(from)) => self.note(path, &copied, &from),
                _ => drop(self.marks.remove(path)),
            }
        }
        Ok(())
    }

    /// Returns the directories that were copied, with their inodes in the source.
    pub(super) fn source_directories(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.marks.iter().filter_map(|(path, mark)| match mark.source {
            InodeStamp::Directory { inode, .. } if !path.as_os_str().is_empty() => {
                Some((path.as_path(), inode))
            }
            _ => None,
        })
    }

    /// Returns the latest change time that the copied files had in the source; `None` for no files.
    pub(super) fn latest_change(&self) -> Option<SystemTime> {
        let changes = self.marks.values().filter_map(|mark| match mark.source {
            InodeStamp::Other { changed_at: (seconds, nanoseconds), .. } => {
                Some(baseline::time(seconds, nanoseconds.unsigned_abs()))
            }
            InodeStamp::Directory { .. } => None,
        });
        changes.max()
    }

    /// Returns everything that was copied, and whether it is a directory.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.marks
            .iter()
            .map(|(path, mark)| (path.as_path(), matches!(mark.source, InodeStamp::Directory { .. })))
    }

    /// Returns true if the path was copied.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.marks.contains_key(path)
    }

    /// Returns true if a difference comes from the source: the source differs from its earlier state, and the copy doesn't.
    pub(super) fn is_of_source(&self, path: &Path, copy: &Stat, source: Option<&Stat>) -> bool {
        self.marks.get(path).is_some_and(|mark| {
            mark.copy == InodeStamp::of(copy)
                && source.is_none_or(|source| mark.source != InodeStamp::of(source))
        })
    }
}

/// Names are bytes, which can't be the members of a JSON object.
impl From<Imprint> for Vec<(Vec<u8>, CopiedFileState)> {
    fn from(imprint: Imprint) -> Self {
        let pair = |(path, mark): (PathBuf, CopiedFileState)| (path.as_os_str().as_bytes().to_vec(), mark);
        imprint.marks.into_iter().map(pair).collect()
    }
}

impl From<Vec<(Vec<u8>, CopiedFileState)>> for Imprint {
    fn from(pairs: Vec<(Vec<u8>, CopiedFileState)>) -> Self {
        let pair = |(path, mark)| (OsString::from_vec(path).into(), mark);
        Self { marks: pairs.into_iter().map(pair).collect() }
    }
}

// === impl InodeStamp ===

impl InodeStamp {
    fn of(stat: &Stat) -> Self {
        let inode = stat.st_ino;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::Directory { inode, mode: stat.st_mode },
            _ => {
                let changed_at = (stat.st_ctime, stat.st_ctime_nsec.cast_signed());
                Self::Other { inode, size: stat.st_size, changed_at }
            }
        }
    }
}
