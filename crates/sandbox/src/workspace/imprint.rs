//! What a copy was when it was made. Its source may go on changing: what stands in the copy as it was is nobody's change.

use crate::directory::{Directory, DirectoryError};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Everything in a copy, as it was made.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<u8>, Mark)>", into = "Vec<(Vec<u8>, Mark)>")]
pub struct Imprint {
    marks: BTreeMap<PathBuf, Mark>,
}

/// By what one tells that nobody has touched something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Mark {
    /// What is in a directory is told by itself.
    Directory { inode: u64, mode: u32 },
    /// Nobody inside can set when something was changed last.
    Other { inode: u64, changed_at: (i64, i64) },
}

// === impl Imprint ===

impl Imprint {
    pub(super) fn note(&mut self, path: &Path, stat: &Stat) {
        self.marks.insert(path.strip_prefix(".").unwrap_or(path).to_owned(), Mark::of(stat));
    }

    /// Takes these paths for copied as they are now: they are again what they are in the source.
    pub(crate) fn renew<'p>(
        &mut self,
        copy: &Directory,
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), DirectoryError> {
        for path in paths {
            match copy.stat(path)? {
                Some(stat) => self.note(path, &stat),
                None => drop(self.marks.remove(path)),
            }
        }
        Ok(())
    }

    /// Whether it was copied.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.marks.contains_key(path)
    }

    /// Whether nobody has touched it since.
    pub(super) fn is_still(&self, path: &Path, now: &Stat) -> bool {
        self.marks.get(path) == Some(&Mark::of(now))
    }
}

/// Names are bytes, which can't be the members of a JSON object.
impl From<Imprint> for Vec<(Vec<u8>, Mark)> {
    fn from(imprint: Imprint) -> Self {
        let pair = |(path, mark): (PathBuf, Mark)| (path.as_os_str().as_bytes().to_vec(), mark);
        imprint.marks.into_iter().map(pair).collect()
    }
}

impl From<Vec<(Vec<u8>, Mark)>> for Imprint {
    fn from(pairs: Vec<(Vec<u8>, Mark)>) -> Self {
        let pair = |(path, mark)| (OsString::from_vec(path).into(), mark);
        Self { marks: pairs.into_iter().map(pair).collect() }
    }
}

// === impl Mark ===

impl Mark {
    fn of(stat: &Stat) -> Self {
        let inode = stat.st_ino;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::Directory { inode, mode: stat.st_mode },
            _ => Self::Other { inode, changed_at: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()) },
        }
    }
}
