//! What a copy was when it was made. Its source may go on changing: what stands in the copy as it was is nobody's change.

use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything in a copy, as it was made.
#[derive(Debug, Default, Clone)]
pub struct Imprint {
    marks: BTreeMap<PathBuf, Mark>,
}

/// By what one tells that nobody has touched something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether it was copied.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.marks.contains_key(path)
    }

    /// Whether nobody has touched it since.
    pub(super) fn is_still(&self, path: &Path, now: &Stat) -> bool {
        self.marks.get(path) == Some(&Mark::of(now))
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
