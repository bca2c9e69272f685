//! Finding and hashing the files that are kept: everything in the artifacts folder, and the files that the job names.
//!
//! The limits are 10 000 files, 4 GiB together, and a minute for all of them; exceeding one fails the job. The apparent
//! size of a file counts before it is read, also for a sparse file. No symbolic link is followed, and everything but
//! regular files is left out. Sizes and hashes are those of the bytes that were read.

use crate::deadline::{Deadline, Interruption};
use crate::directory::{Directory, PathError, RegularFile};
use crate::failure_code::{Fault, code_of_io};
use crate::walk::{self, WalkError, WalkOptions};
use belljar_contract::failure::FailureCode;
use belljar_contract::path::{WORKSPACE, WorkspacePath};
use belljar_contract::result::Artifact;
use belljar_contract::result::output::EntryKind;
use belljar_contract::text;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The artifacts folder as the job sees it, whatever directory it really is.
const ARTIFACTS: &str = "/job/artifacts";

/// Maximum number of files that are kept.
const MAX_ARTIFACTS: usize = 10_000;

/// Maximum total size of the kept files, in bytes: the host stores no more.
const MAX_ARTIFACT_BYTES: u64 = 4 << 30;

/// Maximum time for finding and hashing them.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The files kept, as far as collecting them went.
#[derive(Debug, Default)]
pub(crate) struct CollectedArtifacts {
    /// Files of the folder, sorted by path, then the files that the job names, sorted by path.
    pub(crate) artifacts: Vec<Artifact>,
    /// Number of links and special files of the folder that were left out.
    pub(crate) left_out: usize,
    bytes: u64,
}

/// Reason why files are missing among those kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    #[error("cannot keep the artifact {path}")]
    Named {
        path: WorkspacePath,
        #[source]
        source: PathError,
    },
    #[error("cannot open an artifact")]
    Open(#[source] PathError),
    #[error("cannot read the artifact {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the job has more than {MAX_ARTIFACTS} artifacts")]
    TooMany,
    #[error(
        "the artifacts are larger than {} GiB in total; the limit is exceeded by {} ({size_bytes} bytes)",
        MAX_ARTIFACT_BYTES >> 30,
        path.display()
    )]
    TooLarge { path: PathBuf, size_bytes: u64 },
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

// === impl CollectedArtifacts ===

impl CollectedArtifacts {
    /// Adds the files of the artifacts folder, if there is one.
    pub(crate) fn add_folder(&mut self, folder: &Path, deadline: &Deadline<'_>) -> Result<(), CollectError> {
        let directory = match Directory::open_no_link(folder) {
            Err(error) if error.is_absent() => return Ok(()),
            other => other.map_err(CollectError::Open)?,
        };
        let mut paths = BTreeSet::new();
        let route =
            WalkOptions { max_depth: usize::MAX, targets: false, sizes: false, read_ahead_after: None };
        let walked = walk::walk(&directory, route, deadline, |met| {
            match met.kind {
                EntryKind::File => drop(paths.insert(PathBuf::from(OsStr::from_bytes(met.path)))),
                EntryKind::Directory => {}
                EntryKind::Symlink | EntryKind::Other => self.left_out += 1,
            }
            if paths.len() > MAX_ARTIFACTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        walked.map_err(|error| match error {
            WalkError::Path(error) => CollectError::Open(error),
            WalkError::Interrupted(interrupted) => interrupted.into(),
        })?;
        for path in paths {
            let opened = directory.open_listed_file(&path).map_err(CollectError::Open)?;
            self.add(
                format!("{ARTIFACTS}/{}", text::of_path(path.as_os_str().as_bytes())),
                opened,
                deadline,
            )?;
        }
        Ok(())
    }

    /// Adds the files of the workspace that the job names. Goes on after one that is missing, and reports the first.
    pub(crate) fn add_named(
        &mut self,
        named: &[WorkspacePath],
        workspace: &Directory,
        deadline: &Deadline<'_>,
    ) -> Result<(), CollectError> {
        let mut first_missing = Ok(());
        let workspace = workspace.subdirectory(Path::new("")).map_err(CollectError::Open)?;
        for path in named.iter().collect::<BTreeSet<_>>() {
            match workspace.open_file(Path::new(path.as_str())) {
                Ok(file) => self.add(format!("{WORKSPACE}/{}", path.as_str()), file, deadline)?,
                Err(source) => {
                    first_missing =
                        first_missing.and(Err(CollectError::Named { path: path.clone(), source }));
                }
            }
        }
        first_missing
    }

    fn add(
        &mut self,
        path: String,
        mut opened: RegularFile,
        deadline: &Deadline<'_>,
    ) -> Result<(), CollectError> {
        const BUFFER_BYTES: usize = 256 << 10;
        if self.artifacts.len() >= MAX_ARTIFACTS {
            return Err(CollectError::TooMany);
        }
        let most = MAX_ARTIFACT_BYTES.saturating_sub(self.bytes);
        let too_large = |size_bytes| CollectError::TooLarge { path: PathBuf::from(&path), size_bytes };
        if opened.size_bytes > most {
            return Err(too_large(opened.size_bytes));
        }
        let mut hash = Sha256::new();
        let mut size_bytes: u64 = 0;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            deadline.check()?;
            match opened.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    hash.update(&buffer[..read]);
                    size_bytes += u64::try_from(read).unwrap_or(0);
                    // The file has grown meanwhile.
                    if size_bytes > most {
                        return Err(too_large(size_bytes));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(CollectError::Read { path: path.into(), source }),
            }
        }
        self.bytes += size_bytes;
        self.artifacts.push(Artifact { path, sha256: in_hexadecimal(&hash.finalize()), size_bytes });
        Ok(())
    }
}

fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

// === impl CollectError ===

impl Fault for CollectError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Named { .. } => FailureCode::StepFailed,
            Self::Open(error) => error.code(),
            Self::Read { source, .. } => code_of_io(source),
            Self::TooMany | Self::TooLarge { .. } => FailureCode::ConstraintViolation,
            Self::Interrupted(interrupted) => interrupted.code(),
        }
    }
}
