//! Artifacts: files kept after a run, addressed by what is in them.
//!
//! The host trusts no hash and no size from inside. It opens each file itself, copies it within caps, and what it
//! reports is the hash of the bytes that it stored.

use belljar_contract::path::{WORKSPACE, WorkspacePath};
use belljar_contract::result::Artifact;
use belljar_contract::text;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::reserve::FreeSpace;
use rustix::fs::{FileType, Mode, OFlags, fsync, openat, renameat};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Limits on the artifacts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Files.
    pub files: usize,
    /// Bytes, all together.
    pub bytes: u64,
    /// Maximum depth below the artifacts folder.
    pub depth: usize,
}

/// Why an artifact can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The job has replaced its artifacts folder by something else, or closed it.
    #[error("{ARTIFACTS} is not a directory that can be read")]
    Folder {
        /// Why.
        #[source]
        source: DirectoryError,
    },
    /// It can't be opened as a regular file.
    #[error("artifact {path} is not a regular file that can be read")]
    Open {
        /// The path as the job sees it.
        path: String,
        /// Why.
        #[source]
        source: DirectoryError,
    },
    /// It can't be read or stored.
    #[error("can't store artifact {path}")]
    Store {
        /// The path as the job sees it.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The artifacts exceed the limits.
    #[error("more artifacts than allowed: {} files, {} bytes, {} levels", caps.files, caps.bytes, caps.depth)]
    TooMuch {
        /// Limits in force.
        caps: Caps,
    },
}

/// Takes artifacts out of one run.
#[derive(Debug)]
pub struct Collector<'a> {
    store: &'a Directory,
    caps: Caps,
    bytes_left: u64,
    /// Number of names that may still be looked at, of any kind.
    names_left: usize,
    kept: Vec<Artifact>,
}

/// Number of names looked at for each file that may be kept: a folder may also hold directories and links.
const NAMES_PER_FILE: usize = 10;

/// Folder in which the job puts files to be kept, as the job sees it.
pub const ARTIFACTS: &str = "/job/artifacts";

// === impl Caps ===

impl Default for Caps {
    fn default() -> Self {
        Self { files: 10_000, bytes: 4 << 30, depth: 64 }
    }
}

// === impl Collector ===

impl<'a> Collector<'a> {
    /// Collects into `store`.
    pub fn new(store: &'a Directory, caps: Caps) -> Self {
        let names_left = caps.files.saturating_mul(NAMES_PER_FILE);
        Self { store, caps, bytes_left: caps.bytes, names_left, kept: Vec::new() }
    }

    /// Returns the artifacts that were kept, in the order taken.
    pub fn finish(self) -> Vec<Artifact> {
        self.kept
    }

    /// Takes every regular file below the job's artifacts folder; links, pipes and devices are no artifacts.
    ///
    /// # Errors
    /// [`ArtifactError`]; what was taken before stays taken.
    pub fn take_folder(&mut self, folder: &Directory) -> Result<(), ArtifactError> {
        self.take_below(folder, &PathBuf::new(), 0)
    }

    fn take_below(&mut self, folder: &Directory, below: &Path, depth: usize) -> Result<(), ArtifactError> {
        if depth > self.caps.depth {
            return Err(ArtifactError::TooMuch { caps: self.caps });
        }
        let seen = |path: &Path| format!("{ARTIFACTS}/{}", path.display());
        let open = |source| ArtifactError::Open { path: seen(below), source };
        let directory = match below.as_os_str().is_empty() {
            true => folder.try_clone().map_err(open)?,
            false => folder.open(below).map_err(open)?,
        };
        let names = directory.names(self.names_left).map_err(|error| match error.source {
            rustix::io::Errno::OVERFLOW => ArtifactError::TooMuch { caps: self.caps },
            _ => open(error),
        })?;
        self.names_left -= names.len();
        for entry in names {
            let path = below.join(OsStr::from_bytes(entry.name.as_bytes()));
            match entry.kind {
                FileType::Directory => self.take_below(folder, &path, depth + 1)?,
                FileType::RegularFile => {
                    let inside = format!("{ARTIFACTS}/{}", text::of_path(path.as_os_str().as_bytes()));
                    let file = folder.open_file(&path);
                    self.take(
                        file.map_err(|source| ArtifactError::Open { path: inside.clone(), source })?,
                        inside,
                    )?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes one file of the workspace.
    ///
    /// # Errors
    /// [`ArtifactError`], also when it isn't there.
    pub fn take_named(&mut self, workspace: &Directory, path: &WorkspacePath) -> Result<(), ArtifactError> {
        let inside = format!("{WORKSPACE}/{path}");
        let file = workspace
            .open_file(Path::new(path.as_str()))
            .map_err(|source| ArtifactError::Open { path: inside.clone(), source })?;
        self.take(file, inside)
    }

    fn take(&mut self, mut file: File, inside: String) -> Result<(), ArtifactError> {
        if self.kept.len() >= self.caps.files {
            return Err(ArtifactError::TooMuch { caps: self.caps });
        }
        match self.store(&mut file) {
            Ok(Some((sha256, size_bytes))) => {
                self.bytes_left -= size_bytes;
                self.kept.push(Artifact { path: inside, sha256, size_bytes });
                Ok(())
            }
            Ok(None) => Err(ArtifactError::TooMuch { caps: self.caps }),
            Err(source) => Err(ArtifactError::Store { path: inside, source }),
        }
    }

    /// Copies a file while hashing it; `None` when it is larger than may be kept. A file that grows meanwhile is cut off by
    /// the same cap.
    fn store(&self, file: &mut File) -> std::io::Result<Option<(String, u64)>> {
        // Before anything is copied: a file with holes is as large as it likes.
        let metadata = file.metadata()?;
        if metadata.len() > self.bytes_left {
            return Ok(None);
        }
        if !FreeSpace::of(self.store)?.takes(metadata.blocks().saturating_mul(512)) {
            return Err(ErrorKind::StorageFull.into());
        }
        let temporary = format!(".incoming-{}", uuid::Uuid::now_v7());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut copy = File::from(openat(self.store, &temporary, flags, Mode::from_raw_mode(0o600))?);
        let stored = copy_and_hash(file, &mut copy, self.bytes_left);
        let place = match &stored {
            Ok(Some((sha256, _))) => self.place(&copy, &temporary, sha256),
            _ => Ok(()),
        };
        if place.is_err() || !matches!(stored, Ok(Some(_))) {
            rustix::fs::unlinkat(self.store, &temporary, rustix::fs::AtFlags::empty())?;
        }
        place?;
        stored
    }

    fn place(&self, copy: &File, temporary: &str, sha256: &str) -> std::io::Result<()> {
        fsync(copy)?;
        let shelf = self.store.make(Path::new(&sha256[..2]), 0o700).map_err(|error| error.source)?;
        renameat(self.store, temporary, &shelf, sha256)?;
        fsync(&shelf)?;
        belljar_failpoint::reached("artifact.stored");
        Ok(())
    }
}

/// Returns the path of an artifact in a store at `store`.
pub fn path_in(store: &Path, sha256: &str) -> PathBuf {
    store.join(sha256.get(..2).unwrap_or_default()).join(sha256)
}

/// Copies and hashes up to that many bytes; `None` if there are more. Zeros become a hole, so that a copy takes no more
/// disk than the file.
fn copy_and_hash(from: &mut File, to: &mut File, most: u64) -> std::io::Result<Option<(String, u64)>> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0_u64;
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            to.set_len(size)?;
            let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok(Some((sha256, size)));
        }
        size += read as u64;
        if size > most {
            return Ok(None);
        }
        hash.update(&buffer[..read]);
        match buffer[..read].iter().all(|byte| *byte == 0) {
            true => drop(to.seek(SeekFrom::Current(read as i64))?),
            false => to.write_all(&buffer[..read])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_with_holes_counts_by_its_size_before_it_is_read_and_its_copy_takes_no_more_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (left, store) = (folder.path().join("left"), folder.path().join("store"));
        for made in [&left, &store] {
            std::fs::create_dir(made).unwrap();
        }
        let of = |path: &Path| Directory::open_host(path).unwrap();
        let (left_directory, store_directory) = (of(&left), of(&store));
        File::create(left.join("holes")).unwrap().set_len(8 << 40).unwrap();
        let begun = std::time::Instant::now();
        let mut collector = Collector::new(&store_directory, Caps::default());
        let refused = collector.take_folder(&left_directory);
        assert!(matches!(refused, Err(ArtifactError::TooMuch { .. })), "{refused:?}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
        // The control: one that is small enough is kept as it is.
        File::options().write(true).open(left.join("holes")).unwrap().set_len(8 << 20).unwrap();
        std::fs::write(left.join("text"), "text").unwrap();
        let mut collector = Collector::new(&store_directory, Caps::default());
        collector.take_folder(&left_directory).unwrap();
        for Artifact { sha256, size_bytes, .. } in collector.finish() {
            let copy = std::fs::read(path_in(&store, &sha256)).unwrap();
            assert_eq!(copy.len() as u64, size_bytes);
            assert!(copy == b"text" || copy.iter().all(|byte| *byte == 0));
            let blocks = std::fs::metadata(path_in(&store, &sha256)).unwrap().blocks();
            assert!(blocks * 512 < 1 << 20, "{blocks} blocks for {size_bytes} bytes");
        }
    }
}
