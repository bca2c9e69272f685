//! Output of the runner: its log, line by line, and the last of its error messages.

use super::JobWatch;
use super::logged_steps::LoggedSteps;
use crate::streams::Stream;
use crate::supervise::Hearer;
use belljar_contract::event::LogLine;
use belljar_contract::result::JobResult;
use belljar_files::directory::Directory;
use std::path::Path;
use std::time::Duration;

/// The watcher of a job, with the output so far.
pub(super) struct RunnerLogReader<'w> {
    watch: &'w mut dyn JobWatch,
    partial: Vec<u8>,
    /// The last of what the runner wrote to stderr: why it died, if it did.
    errors: Vec<u8>,
    /// The job's folder, until the runner's status file appears in it.
    silent: Option<Directory>,
    steps: LoggedSteps,
}

/// Output of a runner that has ended.
pub(super) struct RunnerOutput {
    /// Its error messages.
    pub(super) errors: String,
    /// Result that came by the hatches.
    pub(super) reported: Option<JobResult>,
    /// The steps that it has logged.
    pub(super) steps: LoggedSteps,
}

/// File that the runner writes when it has found its job valid.
const STATUS: &str = "status.json";

/// A log line longer than this is no log line.
const LONGEST_LINE: usize = 64 << 10;

const KEPT_ERRORS: usize = 16 << 10;

// === impl RunnerLogReader ===

impl<'w> RunnerLogReader<'w> {
    pub(super) fn new(watch: &'w mut dyn JobWatch, job_folder: Directory) -> Self {
        let (partial, errors, silent) = (Vec::new(), Vec::new(), Some(job_folder));
        Self { watch, partial, errors, silent, steps: LoggedSteps::default() }
    }

    /// Ends the hearing of a runner that has ended.
    pub(super) fn finish(mut self) -> RunnerOutput {
        // The runner may have ended before its status file was noticed.
        self.look();
        let errors = String::from_utf8_lossy(&self.errors).into_owned();
        RunnerOutput { errors, reported: self.watch.reported(), steps: self.steps }
    }
}

impl RunnerLogReader<'_> {
    fn log(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                // Text that is no log line is of no use to a watcher; the result shows what happened.
                if let Ok(line) = serde_json::from_slice::<LogLine>(&self.partial) {
                    self.steps.note(&line);
                    self.watch.heard(&line);
                }
                self.partial.clear();
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
            }
        }
    }

    /// Only the existence of the file counts: a step may have written its content.
    fn look(&mut self) {
        let is_there = |folder: &Directory| folder.open_file(Path::new(STATUS)).is_ok();
        if self.silent.as_ref().is_some_and(is_there) {
            self.silent = None;
            self.watch.started();
        }
    }

    fn complaint(&mut self, bytes: &[u8]) {
        self.errors.extend_from_slice(bytes);
        if self.errors.len() > KEPT_ERRORS {
            self.errors.drain(..self.errors.len() - KEPT_ERRORS);
        }
    }
}

impl Hearer for RunnerLogReader<'_> {
    fn heard(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.log(bytes),
            Stream::Stderr => self.complaint(bytes),
        }
    }

    fn tick(&mut self) {
        self.look();
        self.watch.tick();
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.watch.is_to_stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct StartCounter {
        started: u32,
    }

    impl JobWatch for StartCounter {
        fn started(&mut self) {
            self.started += 1;
        }

        fn heard(&mut self, _: &LogLine) {}

        fn tick(&mut self) {}

        fn is_to_stop(&self) -> Option<Duration> {
            None
        }
    }

    /// Returns how often the start of the job was reported, and how often that was while it ran.
    fn started(write: impl FnOnce(&Path)) -> (u32, u32) {
        let folder = tempfile::tempdir().unwrap();
        let mut counted = StartCounter::default();
        let mut hearing = RunnerLogReader::new(&mut counted, Directory::open_host(folder.path()).unwrap());
        hearing.tick();
        write(&folder.path().join(STATUS));
        hearing.tick();
        hearing.tick();
        let while_it_ran = u32::from(hearing.silent.is_none());
        hearing.finish();
        (counted.started, while_it_ran)
    }

    #[test]
    fn that_a_job_has_begun_is_heard_once_by_the_file_that_says_so() {
        assert_eq!(started(|path| std::fs::write(path, "{}").unwrap()), (1, 1));
        // The controls: no file, and what is none.
        assert_eq!(started(|_| ()), (0, 0));
        assert_eq!(started(|path| std::fs::create_dir(path).unwrap()), (0, 0));
        assert_eq!(started(|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap()), (0, 0));
    }
}
