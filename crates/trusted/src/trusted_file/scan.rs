//! Looks for another name of a file in a directory that a sandbox writes.
//!
//! The sandbox may move the name during the search. So each directory is looked at twice, and a result counts only if none
//! has changed since: then there was a moment at which all of it was as seen. The change time of a directory shows that it
//! has changed; no program can set it.

use crate::in_use::FileIdentity;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, StatxFlags, StatxTimestamp, fstat, openat2,
    statat, statx,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of names that are looked at. With more, a file with several names isn't trusted at all.
const MOST_NAMES: usize = 2_000_000;

/// Pauses before a changed directory is looked at again, in milliseconds.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

const UNREADABLE: &str =
    "the file has several names, and a directory of the workspace can't be looked through for them";

/// Time of the last change of each directory.
type ChangeTimes = BTreeMap<FileIdentity, (i64, u32)>;

/// Finds the other name, below the directory. `is_mounted` returns true for directories that are searched separately.
///
/// # Errors
/// The reason why it can't be determined.
pub(super) fn find(
    directory: &OwnedFd,
    wanted: FileIdentity,
    is_mounted: impl Fn(FileIdentity) -> bool,
) -> Result<Option<PathBuf>, &'static str> {
    let is_directory = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
    if !fstat(directory).is_ok_and(|stat| is_directory(stat.st_mode)) {
        return Ok(None);
    }
    let mut before = None;
    for pause in PAUSES {
        let mut scan =
            TreeScan { directory, wanted, is_mounted: &is_mounted, seen: Some(ChangeTimes::new()), names: 0 };
        if let Some(found) = scan.look()? {
            return Ok(Some(found));
        }
        match (&scan.seen, &before) {
            (Some(seen), Some(before)) if seen == before => return Ok(None),
            (Some(_), _) => {}
            (None, _) => std::thread::sleep(Duration::from_millis(pause)),
        }
        before = scan.seen;
    }
    Err("the file has several names, and the workspace changes while they are looked for in it")
}

/// Scan of the whole tree.
struct TreeScan<'s> {
    directory: &'s OwnedFd,
    wanted: FileIdentity,
    is_mounted: &'s dyn Fn(FileIdentity) -> bool,
    /// `None` once something is known to have changed, or may change unnoticed.
    seen: Option<ChangeTimes>,
    names: usize,
}

// === impl TreeScan ===

impl TreeScan<'_> {
    fn look(&mut self) -> Result<Option<PathBuf>, &'static str> {
        let mut pending = vec![PathBuf::from(".")];
        while let Some(below) = pending.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            match openat2(self.directory, &below, flags, Mode::empty(), resolve) {
                Ok(opened) => {
                    if let Some(found) = self.look_in(&opened, &below, &mut pending)? {
                        return Ok(Some(found));
                    }
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.seen = None,
                Err(Errno::XDEV) if self.is_mounted_at(&below) => {}
                // Its owner can give the right back that is missing.
                Err(_) => return Err(UNREADABLE),
            }
        }
        Ok(None)
    }

    fn look_in(
        &mut self,
        opened: &OwnedFd,
        below: &Path,
        pending: &mut Vec<PathBuf>,
    ) -> Result<Option<PathBuf>, &'static str> {
        let told = statx(opened, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::CTIME);
        let told = told.map_err(|_| UNREADABLE)?;
        match (&mut self.seen, is_old(&told.stx_ctime)) {
            (Some(seen), true) => {
                seen.insert(FileIdentity::of_statx(&told), (told.stx_ctime.tv_sec, told.stx_ctime.tv_nsec));
            }
            _ => self.seen = None,
        }
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(opened, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|_| UNREADABLE)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.names += 1;
            if self.names > MOST_NAMES {
                return Err("the file has several names, and the workspace too many files to look for them");
            }
            let name_below = Path::new(OsStr::from_bytes(name));
            let path = if below == Path::new(".") { name_below.to_owned() } else { below.join(name_below) };
            match statat(opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileIdentity::of(&stat) == self.wanted => return Ok(Some(path)),
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    pending.push(path);
                }
                Ok(_) => {}
                Err(Errno::NOENT) => self.seen = None,
                Err(_) => return Err(UNREADABLE),
            }
        }
        Ok(None)
    }

    fn is_mounted_at(&self, below: &Path) -> bool {
        let stat = statat(self.directory, below, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| (self.is_mounted)(FileIdentity::of(&stat)))
    }
}

/// Returns true if a further change would have another time. The clock of a file system moves on in steps.
fn is_old(changed: &StatxTimestamp) -> bool {
    const NANOSECONDS: i128 = 1_000_000_000;
    let step = if changed.tv_nsec == 0 { 2 * NANOSECONDS } else { NANOSECONDS / 50 };
    let now = clock_gettime(ClockId::RealtimeCoarse);
    let since = i128::from(now.tv_sec - changed.tv_sec) * NANOSECONDS + i128::from(now.tv_nsec)
        - i128::from(changed.tv_nsec);
    since > step
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, openat, stat};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    struct ScanFixture(tempfile::TempDir);

    impl ScanFixture {
        fn new() -> Self {
            let ground = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(ground.at("work/inner")).unwrap();
            fs::write(ground.at("file"), "").unwrap();
            ground
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn find(&self) -> Result<Option<PathBuf>, &'static str> {
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let directory = openat(CWD, self.at("work"), flags, Mode::empty()).unwrap();
            find(&directory, FileIdentity::of(&stat(self.at("file")).unwrap()), |_| false)
        }
    }

    #[test]
    fn name_in_a_directory_is_found() {
        let ground = ScanFixture::new();
        assert_eq!(ground.find(), Ok(None));
        fs::hard_link(ground.at("file"), ground.at("work/inner/other")).unwrap();
        assert_eq!(ground.find(), Ok(Some(PathBuf::from("inner/other"))));
    }

    #[test]
    fn name_moved_during_a_scan_is_found_or_the_scan_fails() {
        let ground = ScanFixture::new();
        for folder in ["a", "b"] {
            fs::create_dir(ground.at("work").join(folder)).unwrap();
            for number in 0..200 {
                fs::write(ground.at("work").join(folder).join(number.to_string()), "").unwrap();
            }
        }
        fs::hard_link(ground.at("file"), ground.at("work/a/x")).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(order) {
                    fs::rename(ground.at("work/a/x"), ground.at("work/b/x")).unwrap();
                    fs::rename(ground.at("work/b/x"), ground.at("work/a/x")).unwrap();
                }
            });
            let all: Vec<_> = (0..20).map(|_| ground.find()).collect();
            is_over.store(true, order);
            assert!(!all.contains(&Ok(None)), "{all:?}");
        });
        // The control.
        fs::remove_file(ground.at("work/a/x")).unwrap();
        assert_eq!(ground.find(), Ok(None));
    }

    #[test]
    fn directory_that_cannot_be_read_hides_no_name() {
        let ground = ScanFixture::new();
        if rustix::process::geteuid().is_root() {
            // Root reads it all the same.
            return;
        }
        let set = |mode| fs::set_permissions(ground.at("work/inner"), fs::Permissions::from_mode(mode));
        set(0o000).unwrap();
        assert_eq!(ground.find(), Err(UNREADABLE));
        set(0o700).unwrap();
        assert_eq!(ground.find(), Ok(None));
    }
}
