//! What the source of a copy is compared with before it is written to: nobody's work may be lost.
//!
//! A file that was touched since the copy was made is somebody else's, unless a commit of this very copy touched it and
//! nobody has since.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// When a copy was made, and what its commits have left in the source since.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Baseline {
    since: SystemTime,
    #[serde(with = "as_pairs")]
    committed: HashMap<Vec<u8>, Stamp>,
    /// What a file is called in the source while it is written. Nobody inside knows it.
    temporary: String,
}

/// How a file was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    size: i64,
    mode: u32,
    modified_at: SystemTime,
    changed_at: SystemTime,
}

// === impl Baseline ===

impl Baseline {
    /// That of a copy that is made now.
    pub fn now() -> Self {
        Self::at(SystemTime::now())
    }

    /// That of a copy that was made then.
    pub fn at(since: SystemTime) -> Self {
        let temporary = format!(".belljar-{}", Uuid::new_v4());
        Self { since, committed: HashMap::new(), temporary }
    }

    /// Whether somebody else has touched what is there now.
    pub(super) fn is_touched(&self, path: &Path, now: &Stat) -> bool {
        let stamp = Stamp::of(now);
        let is_newer = stamp.modified_at > self.since || stamp.changed_at > self.since;
        is_newer && self.committed.get(path.as_os_str().as_bytes()) != Some(&stamp)
    }

    /// Notes how a commit has left a file.
    pub(super) fn note(&mut self, path: &Path, left: &Stat) {
        self.committed.insert(path.as_os_str().as_bytes().to_owned(), Stamp::of(left));
    }

    /// When the copy was made.
    pub(crate) fn since(&self) -> SystemTime {
        self.since
    }

    pub(super) fn temporary(&self) -> &str {
        &self.temporary
    }
}

// === impl Stamp ===

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            mode: stat.st_mode,
            modified_at: time(stat.st_mtime, stat.st_mtime_nsec),
            changed_at: time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds.unsigned_abs(), nanoseconds)
}

/// Names are bytes, which can't be the members of a JSON object.
mod as_pairs {
    use super::Stamp;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::HashMap;

    pub(super) fn serialize<S: Serializer>(
        committed: &HashMap<Vec<u8>, Stamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(committed)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<HashMap<Vec<u8>, Stamp>, D::Error> {
        Ok(Vec::<(Vec<u8>, Stamp)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;

    #[test]
    fn what_a_commit_left_is_nobodys_work_until_somebody_touches_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open_host(place.path()).unwrap();
        let path = Path::new("file");
        std::fs::write(place.path().join(path), "old").unwrap();
        let stat = || directory.stat(path).unwrap().unwrap();
        let mut baseline = Baseline::now();
        assert!(!baseline.is_touched(path, &stat()));
        let touch = |content: &str| std::fs::write(place.path().join(path), content).unwrap();
        // The kernel's clock for files goes in larger steps than the other.
        belljar_testkit::wait::until(|| {
            touch("newer");
            baseline.is_touched(path, &stat())
        });
        baseline.note(path, &stat());
        assert!(!baseline.is_touched(path, &stat()));
        let told: Baseline = serde_json::from_slice(&serde_json::to_vec(&baseline).unwrap()).unwrap();
        assert!(!told.is_touched(path, &stat()));
        touch("of another length");
        assert!(told.is_touched(path, &stat()));
    }
}
