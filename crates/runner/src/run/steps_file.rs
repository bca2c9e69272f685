//! Journal of completed steps, `steps.jsonl` beside the job: a resumed run repeats none of them.
//!
//! A line is written when a step begins and when it has succeeded, each with one write; an incomplete line is ignored.
//! Steps can change the file. If another process has changed it, it is removed, so that no later run trusts it. If a
//! step changes it and is interrupted together with the runner, that is not detected. Therefore the result reports that
//! steps were reused. The file is removed when the result is written.

use crate::atomic_file::{self, Durability};
use crate::log::Log;
use belljar_contract::job::Job;
use belljar_contract::result::{ResourceUsage, StepResult, StepStatus};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The journal; empty if there is no directory for it.
#[derive(Debug, Default)]
pub(super) struct StepsFile {
    open: Option<OpenJournal>,
}

/// Progress of an earlier run of the same job that was interrupted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EarlierProgress {
    /// Steps that have succeeded, from the first on.
    pub(super) done: Vec<CompletedStep>,
    /// Step that was running at the interruption.
    pub(super) running: Option<usize>,
}

/// A step that has succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompletedStep {
    pub(super) entry: StepResult,
    pub(super) usage: ResourceUsage,
}

#[derive(Debug)]
struct OpenJournal {
    directory: OwnedFd,
    file: File,
    /// Bytes that were written.
    length: u64,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    /// The first line: identifies the job by the hash of its document.
    Job {
        version: u32,
        sha256: String,
    },
    Began(usize),
    Done(Box<CompletedStep>),
}

const NAME: &str = "steps.jsonl";
const VERSION: u32 = 1;
/// Maximum size, in bytes. Steps beyond that are repeated.
const MOST_BYTES: u64 = 64 << 20;

// === impl StepsFile ===

impl StepsFile {
    /// Opens the journal in the job's directory; also returns the progress of an earlier run.
    pub(super) fn begin(directory: &Path, job: &Job, document: &[u8]) -> io::Result<(Self, EarlierProgress)> {
        let directory = atomic_file::open_directory(directory)?;
        let sha256: String = Sha256::digest(document).iter().map(|byte| format!("{byte:02x}")).collect();
        let earlier = read(&directory).ok().flatten();
        let earlier = earlier.map(|bytes| EarlierProgress::of(&bytes, &sha256, job)).unwrap_or_default();
        let mut bytes = line(&JournalLine::Job { version: VERSION, sha256 })?;
        for done in &earlier.done {
            bytes.extend(line(&JournalLine::Done(Box::new(done.clone())))?);
        }
        atomic_file::put(&directory, NAME, &bytes, Durability::Runner)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&directory, NAME, flags, Mode::empty())?);
        Ok((Self { open: Some(OpenJournal { directory, file, length: bytes.len() as u64 }) }, earlier))
    }

    /// A step begins.
    pub(super) fn began(&mut self, index: usize, log: &Log<'_>) {
        self.note(&JournalLine::Began(index), log);
    }

    /// Notes the end of a step. A failed step is not noted, because the job ends with it.
    pub(super) fn ended(&mut self, entry: &StepResult, usage: ResourceUsage, log: &Log<'_>) {
        if entry.status == StepStatus::Success && self.open.is_some() {
            self.note(&JournalLine::Done(Box::new(CompletedStep { entry: entry.clone(), usage })), log);
        }
    }

    /// Removes the journal, because the result is written and nothing is left to be resumed.
    pub(super) fn forget(&mut self) {
        if let Some(OpenJournal { directory, .. }) = self.open.take() {
            // An entry that can't be removed is not a file, and is not read either.
            let _ = rustix::fs::unlinkat(directory, NAME, AtFlags::empty());
        }
    }

    fn note(&mut self, what: &JournalLine, log: &Log<'_>) {
        let Some(open) = &mut self.open else { return };
        let trouble = match open.note(what) {
            Ok(()) => return,
            Err(error) => error,
        };
        log.warn(format!("{NAME} is discarded, so this job cannot be resumed: {trouble}"));
        self.forget();
    }
}

impl OpenJournal {
    fn note(&mut self, what: &JournalLine) -> io::Result<()> {
        let (held, named) = (
            rustix::fs::fstat(&self.file)?,
            rustix::fs::statat(&self.directory, NAME, AtFlags::SYMLINK_NOFOLLOW)?,
        );
        let is_ours = (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino);
        if !is_ours || held.st_size.cast_unsigned() != self.length {
            return Err(io::Error::other("it was changed by another process"));
        }
        let bytes = line(what)?;
        if self.length + bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("it is too large"));
        }
        self.file.write_all(&bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Reads the journal if it is a regular file. A FIFO without a writer doesn't block.
fn read(directory: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, NAME, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= MOST_BYTES))
}

fn line(line: &JournalLine) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

// === impl EarlierProgress ===

impl EarlierProgress {
    /// Reads the lines up to the first that can't have been written by a run of this job.
    fn of(bytes: &[u8], sha256: &str, job: &Job) -> Self {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| match line {
            [line @ .., b'\n'] => serde_json::from_slice(line).ok(),
            _ => None,
        });
        let mut earlier = Self::default();
        let is_this = |line: Option<JournalLine>| matches!(line, Some(JournalLine::Job { version: VERSION, sha256: whose }) if whose == sha256);
        if !lines.next().is_some_and(is_this) {
            return earlier;
        }
        while let Some(line) = lines.next().flatten() {
            let next = earlier.done.len();
            match line {
                JournalLine::Began(index) if index == next && index < job.steps.len() => {
                    earlier.running = Some(index);
                }
                JournalLine::Done(done) if is_step(&done.entry, next, job) => {
                    earlier.done.push(*done);
                    earlier.running = None;
                }
                _ => break,
            }
        }
        earlier
    }
}

/// Returns true if the entry belongs to this step of the job.
fn is_step(entry: &StepResult, index: usize, job: &Job) -> bool {
    job.steps.get(index).is_some_and(|step| {
        (entry.index, &entry.id, entry.step_type) == (index, &step.name(index), step.action.step_type())
            && entry.status == StepStatus::Success
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::job::step::StepType;
    use std::os::fd::AsFd;

    const DOCUMENT: &str = r#"{
        "protocol_version": "1.0", "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1000 },
        "steps": [{ "type": "list_tree" }, { "type": "list_tree" }, { "type": "list_tree" }]
    }"#;

    fn begin(folder: &Path, document: &str) -> (StepsFile, EarlierProgress) {
        let job = Job::parse(DOCUMENT.as_bytes()).unwrap();
        StepsFile::begin(folder, &job, document.as_bytes()).unwrap()
    }

    fn entry(index: usize) -> StepResult {
        StepResult {
            index,
            id: format!("step-{}", index + 1),
            step_type: StepType::ListTree,
            status: StepStatus::Success,
            started_at: None,
            finished_at: None,
            duration_ms: 0,
            result: None,
            error: None,
        }
    }

    /// Does this with a file at which two steps are done and the third has begun; whether it was given up.
    fn with_two_done(folder: &Path, then: impl FnOnce()) -> bool {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let log = Log::to(null.as_fd());
        let (mut file, earlier) = begin(folder, DOCUMENT);
        assert_eq!(earlier, EarlierProgress::default());
        for index in 0..2 {
            file.began(index, &log);
            file.ended(&entry(index), ResourceUsage::default(), &log);
        }
        file.began(2, &log);
        then();
        file.ended(&entry(2), ResourceUsage::default(), &log);
        file.open.is_none()
    }

    #[test]
    fn completed_steps_are_read_back_only_once_and_by_the_same_job() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let mut before = Vec::new();
        assert!(!with_two_done(folder.path(), || before = std::fs::read(&path).unwrap()));
        std::fs::write(&path, &before).unwrap();
        let (_, earlier) = begin(folder.path(), DOCUMENT);
        assert_eq!((earlier.done.len(), earlier.running), (2, Some(2)));
        // Cut off again before it has begun anything.
        let (mut file, earlier) = begin(folder.path(), DOCUMENT);
        assert_eq!((earlier.done.len(), earlier.running), (2, None));
        file.forget();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        std::fs::write(&path, &before).unwrap();
        assert_eq!(begin(folder.path(), &DOCUMENT.replace("60", "61")).1, EarlierProgress::default());
    }

    #[test]
    fn step_journal_ends_at_a_truncated_or_invalid_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let mut whole = Vec::new();
        with_two_done(folder.path(), || whole = std::fs::read(&path).unwrap());
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let (_, earlier) = begin(folder.path(), DOCUMENT);
            assert_eq!(earlier.done.len(), lines.saturating_sub(1) / 2, "{length}");
        }
        for (from, to) in [
            ("step-2", "step-3"),
            ("\"success\"", "\"failure\""),
            ("list_tree", "read_file"),
            ("\"began\":1", "\"began\":7"),
        ] {
            let text = String::from_utf8(whole.clone()).unwrap();
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let done = begin(folder.path(), DOCUMENT).1.done.len();
            assert!(done < 2, "{from}: {done}");
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(begin(folder.path(), DOCUMENT).1, EarlierProgress::default());
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn step_journal_changed_by_a_step_is_discarded() {
        type Corruption = fn(&Path);
        let harms: [Corruption; 4] = [
            |path| std::fs::write(path, "{}").unwrap(),
            |path| std::fs::remove_file(path).unwrap(),
            |path| {
                let bytes = std::fs::read(path).unwrap();
                std::fs::remove_file(path).unwrap();
                std::fs::write(path, bytes).unwrap();
            },
            |path| {
                let mut file = File::options().append(true).open(path).unwrap();
                file.write_all(b"{\"began\":2}\n").unwrap();
            },
        ];
        for harm in harms {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(NAME);
            assert!(with_two_done(folder.path(), || harm(&path)));
            assert!(!path.exists());
        }
        // The control.
        let folder = tempfile::tempdir().unwrap();
        assert!(!with_two_done(folder.path(), || ()) && folder.path().join(NAME).exists());
    }
}
