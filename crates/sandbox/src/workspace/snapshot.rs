//! A snapshot of a directory, where one is cheap: what the host changes later in the directory doesn't show in a run on it,
//! and changes that conflict can be merged, because the files that the run began with are still there.
//!
//! A small directory is copied. On a file system that shares blocks between copies a larger one is, too. Every other directory
//! is worked on through an overlay, and what something else changes in it is reported (`drift`).

use super::copy;
use crate::state::RunFolder;
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Maximum size of a directory of which a snapshot is cheap.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotLimits {
    /// Maximum number of names in it.
    pub names: usize,
    /// Maximum number of bytes in its files, where copies share no blocks.
    pub bytes: u64,
}

/// The snapshot in the folder of its run, in a directory that other users of the host can't enter.
const FOLDER: &str = "base";
const TREE: &str = "tree";

// === impl SnapshotLimits ===

impl SnapshotLimits {
    /// Limits for a run that may take as little as a few milliseconds.
    pub const FOR_COMMAND: Self = Self { names: 64, bytes: 512 << 10 };
    /// Limits for a run that takes seconds or more.
    pub const FOR_LONG_RUN: Self = Self { names: 4_096, bytes: 32 << 20 };
}

/// Takes a snapshot into the folder of a run. `None` if it is not cheap, or a copy would be another thing than the directory:
/// with files of several owners, hard links, or what is neither file, directory nor link.
pub fn take(source: &HostPath, folder: &RunFolder, cheap: SnapshotLimits) -> Option<HostPath> {
    let place = folder.path().join(FOLDER);
    let directory = Directory::open_meant(source).ok()?;
    let top = directory.stat_itself().ok()?;
    if !is_cheap((&directory, &top), folder.path(), cheap) {
        return None;
    }
    let taken = copy_to((&directory, &top), &place);
    if taken.is_none()
        && let Ok(made) = Directory::open_host(&place)
    {
        // Its leftovers are removed with the folder at the latest.
        let _ = made.clear();
        let _ = std::fs::remove_dir(place);
    }
    taken
}

fn copy_to((source, top): (&Directory, &Stat), place: &Path) -> Option<HostPath> {
    let tree = place.join(TREE);
    DirBuilder::new().mode(0o700).create(place).ok()?;
    DirBuilder::new().mode(0o700).create(&tree).ok()?;
    let copied = Directory::open_host(&tree).ok()?;
    let owner = Identity {
        inside_uid: top.st_uid,
        inside_gid: top.st_gid,
        host_uid: top.st_uid,
        host_gid: top.st_gid,
    };
    copy::tree(source, &copied, owner).ok()?;
    copy::give_itself(&copied, owner).ok()?;
    HostPath::resolve(tree).ok()
}

fn is_cheap((source, top): (&Directory, &Stat), folder: &Path, cheap: SnapshotLimits) -> bool {
    let mut scan =
        Scan { top, names_left: cheap.names, bytes: 0, first: None, pending: vec![PathBuf::new()] };
    while let Some(below) = scan.pending.pop() {
        if !scan.directory(source, &below).unwrap_or(false) {
            return false;
        }
    }
    scan.bytes <= cheap.bytes || scan.first.is_some_and(|first| shares_blocks((source, &first), folder))
}

/// State of a scan through a directory.
struct Scan<'a> {
    top: &'a Stat,
    names_left: usize,
    bytes: u64,
    /// The first file with content.
    first: Option<PathBuf>,
    pending: Vec<PathBuf>,
}

// === impl Scan ===

impl Scan<'_> {
    /// Looks at a directory's names. Returns false if there can be no snapshot.
    fn directory(&mut self, source: &Directory, below: &Path) -> Result<bool, DirectoryError> {
        let directory = match below.as_os_str().is_empty() {
            true => source.try_clone()?,
            false => source.open(below)?,
        };
        let names = directory.names(self.names_left)?;
        self.names_left -= names.len();
        for name in names {
            let Ok(stat) = statat(&directory, &name.name, AtFlags::SYMLINK_NOFOLLOW) else {
                return Ok(false);
            };
            let path = below.join(OsStr::from_bytes(name.name.as_bytes()));
            let is_own = (stat.st_uid, stat.st_gid, stat.st_dev)
                == (self.top.st_uid, self.top.st_gid, self.top.st_dev);
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if is_own => self.pending.push(path),
                FileType::RegularFile if is_own && stat.st_nlink == 1 => {
                    self.bytes = self.bytes.saturating_add(stat.st_size.unsigned_abs());
                    if self.first.is_none() && stat.st_size > 0 {
                        self.first = Some(path);
                    }
                }
                FileType::Symlink if is_own => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Returns true if a copy in the folder shares the blocks of a file.
fn shares_blocks((source, path): (&Directory, &Path), folder: &Path) -> bool {
    let (Ok(file), Ok(folder)) = (source.open_file(path), Directory::open_host(folder)) else { return false };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let copy = openat(&folder, ".", flags, Mode::RUSR | Mode::WUSR).map(File::from);
    copy.is_ok_and(|copy| rustix::fs::ioctl_ficlone(&copy, &file).is_ok())
}
