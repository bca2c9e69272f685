//! Atomic writing of `result.json`, also on a full disk.
//!
//! A draft is created beside the final path when the run starts, with space for a short result reserved. At the end the
//! result is written into it, and it is renamed. If the disk has filled up meanwhile, the outputs of the steps are left
//! out, and the rest fits into the reserved space.

use crate::atomic_file;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::{Failure, JobResult};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A place for one result.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    directory: OwnedFd,
    name: OsString,
    draft: ResultDraft,
}

/// A result that could not be put in its place.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub(crate) struct ResultFileError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

#[derive(Debug)]
struct ResultDraft {
    file: File,
    name: String,
}

/// Reserved space for a result without step outputs, in bytes.
const RESERVED_BYTES: usize = 64 << 10;

// === impl ResultFile ===

impl ResultFile {
    /// Creates the draft for the result at `path`. A result of an earlier run is removed, so that it can't be mistaken
    /// for this one's.
    pub(crate) fn prepare(path: &Path) -> Result<Self, ResultFileError> {
        let failed = |action| move |source: Errno| ResultFileError::new(action, path, source.into());
        let name = path.file_name().ok_or_else(|| failed("write a result to")(Errno::ISDIR))?.to_owned();
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(parent, flags, Mode::empty()).map_err(failed("open the directory of"))?;
        match rustix::fs::unlinkat(&directory, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(failed("remove the earlier result")(error)),
        }
        let draft = ResultDraft::create(&directory).map_err(failed("create a file beside"))?;
        Ok(Self { path: path.to_owned(), directory, name, draft })
    }

    /// Writes the result to its final path. If it doesn't fit, it becomes a failed one without the outputs. If not even
    /// that fits, there is no file at that path.
    pub(crate) fn publish(mut self, result: &mut JobResult) -> Result<(), ResultFileError> {
        match self.publish_draft(result) {
            Ok(None) => Ok(()),
            Ok(Some(shortened)) => {
                *result = shortened;
                Ok(())
            }
            Err(source) => {
                if self.draft.is_still_in(&self.directory) {
                    let _ = rustix::fs::unlinkat(&self.directory, &self.draft.name, AtFlags::empty());
                }
                Err(ResultFileError::new("write", &self.path, source))
            }
        }
    }

    fn publish_draft(&mut self, result: &JobResult) -> io::Result<Option<JobResult>> {
        atomic_file::open_up(&self.directory)?;
        if !self.draft.is_still_in(&self.directory) {
            // A step has removed or replaced the draft. No step runs any more, so a new one is safe.
            self.draft = ResultDraft::create(&self.directory)?;
        }
        let shortened = self.draft.fill_as_far_as_it_fits(result)?;
        match rustix::fs::renameat(&self.directory, &self.draft.name, &self.directory, &self.name) {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => self.displace_directory()?,
            other => other?,
        }
        rustix::fs::fsync(&self.directory)?;
        Ok(shortened)
    }

    /// Moves a directory aside that a step has put where the result belongs.
    fn displace_directory(&self) -> io::Result<()> {
        let aside = fresh_name();
        rustix::fs::renameat(&self.directory, &self.name, &self.directory, &aside)?;
        rustix::fs::renameat(&self.directory, &self.draft.name, &self.directory, &self.name)?;
        Ok(())
    }
}

fn fresh_name() -> String {
    format!(".belljar-{}", uuid::Uuid::new_v4().simple())
}

// === impl ResultDraft ===

impl ResultDraft {
    fn create(directory: &OwnedFd) -> Result<Self, Errno> {
        let name = fresh_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(0o644))?;
        // If no space can be reserved, only a full disk at the end is a problem, and then the log still has the result.
        let mut file = File::from(file);
        let _ = file.write_all(&[0; RESERVED_BYTES]);
        Ok(Self { file, name })
    }

    fn is_still_in(&self, directory: &OwnedFd) -> bool {
        let named = rustix::fs::statat(directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(&self.file);
        matches!((named, held), (Ok(named), Ok(held))
            if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }

    /// Writes the result; returns the shortened one if that was written.
    fn fill_as_far_as_it_fits(&mut self, result: &JobResult) -> io::Result<Option<JobResult>> {
        match self.fill(result) {
            Err(error) if is_full(&error) => {}
            other => return other.map(|()| None),
        }
        let short = without_outputs(result);
        match self.fill(&short) {
            Err(error) if is_full(&error) => {}
            other => return other.map(|()| Some(short)),
        }
        let shortest = JobResult {
            steps: Vec::new(),
            artifacts: Vec::new(),
            problems: Vec::new(),
            skill_id: None,
            persona_id: None,
            ..short
        };
        self.fill(&shortest).map(|()| Some(shortest))
    }

    /// Writes from the start, and truncates the file only when everything is in, so that the reserved space isn't freed
    /// before. Some file systems detect that they are full only when the bytes are written to disk.
    fn fill(&mut self, result: &JobResult) -> io::Result<()> {
        const BUFFER_BYTES: usize = 256 << 10;
        self.file.rewind()?;
        let mut writer = BufWriter::with_capacity(BUFFER_BYTES, &mut self.file);
        serde_json::to_writer(&mut writer, result)?;
        writer.write_all(b"\n")?;
        writer.flush()?;
        drop(writer);
        let length = self.file.stream_position()?;
        self.file.set_len(length)?;
        self.file.sync_all()
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Returns the same result without outputs. A success is turned into a failure, because it doesn't count without its
/// outputs.
fn without_outputs(result: &JobResult) -> JobResult {
    let mut short = result.clone();
    short.steps.iter_mut().for_each(|step| step.result = None);
    if let Some(agent) = &mut short.agent {
        (agent.answer, agent.todo, agent.verification) = (None, Vec::new(), Vec::new());
    }
    let left_out = "the disk is full: the outputs of the steps are left out";
    match &mut short.failure_message {
        Some(message) => *message = format!("{message} ({left_out})"),
        None => {
            let at = short.finished_at;
            return short.failed(Failure::new(FailureCode::ConstraintViolation, left_out), at);
        }
    }
    short
}

// === impl ResultFileError ===

impl ResultFileError {
    fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_owned(), source }
    }
}
