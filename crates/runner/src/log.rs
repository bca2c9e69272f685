//! The runner's log: one JSON object a line (`docs/contracts/draft.md#d9`), never anything else.
//!
//! A reader that is gone or stalled must not block a job. So every write waits for space a moment at most, and after
//! one that failed the log is given up.

mod progress;

pub(crate) use progress::Progress;

use belljar_contract::event::{Event, LogLine};
use belljar_contract::result::JobResult;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};

/// Writes log lines to a descriptor.
pub(crate) struct Log<'f> {
    to: BorrowedFd<'f>,
    job_id: RefCell<Option<String>>,
    given_up: Cell<bool>,
}

/// Maximum time that a line waits for its reader.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Number of bytes that a pipe with free space accepts without blocking (`PIPE_BUF`).
const CHUNK_BYTES: usize = 4096;

// === impl Log ===

impl<'f> Log<'f> {
    /// A log that goes to `to`.
    pub(crate) fn to(to: BorrowedFd<'f>) -> Self {
        Self { to, job_id: RefCell::default(), given_up: Cell::new(false) }
    }

    /// Names the job in every line from here on.
    pub(crate) fn name_job(&self, job_id: &str) {
        self.job_id.replace(Some(job_id.to_owned()));
    }

    /// Writes one event.
    pub(crate) fn write(&self, event: Event) {
        let line = LogLine { at: Timestamp::now(), job_id: self.job_id.borrow().clone(), event };
        self.write_json(serde_json::to_vec(&line));
    }

    /// Writes a warning for the operator.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.write(Event::Warning { message: message.into() });
    }

    /// Writes a result that could not be written elsewhere.
    pub(crate) fn write_result(&self, result: &JobResult) {
        self.write_json(serde_json::to_vec(&serde_json::json!({ "at": Timestamp::now(), "result": result })));
    }

    fn write_json(&self, line: serde_json::Result<Vec<u8>>) {
        let Ok(mut line) = line else { return };
        line.push(b'\n');
        if !self.given_up.get() && write_patiently(self.to, &line).is_err() {
            self.given_up.set(true);
        }
    }
}

fn write_patiently(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    for mut chunk in bytes.chunks(CHUNK_BYTES) {
        while !chunk.is_empty() {
            let mut polled = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            match rustix::event::poll(&mut polled, Some(&PATIENCE)) {
                Ok(0) => return Err(Errno::TIMEDOUT),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            match rustix::io::write(to.as_fd(), chunk) {
                Ok(written) => chunk = &chunk[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_to(log_to: BorrowedFd<'_>, lines: usize) -> bool {
        let log = Log::to(log_to);
        for _ in 0..lines {
            log.warn("x".repeat(10_000));
        }
        !log.given_up.get()
    }

    #[test]
    fn log_line_is_one_json_object_with_the_job_id() {
        let (reader, writer) = std::io::pipe().unwrap();
        let log = Log::to(writer.as_fd());
        log.name_job("j");
        log.warn("two\nlines");
        let mut bytes = [0; 1000];
        let length = rustix::io::read(&reader, &mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let line: LogLine = serde_json::from_str(text).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(line.job_id.as_deref(), Some("j"));
        assert_eq!(line.event, Event::Warning { message: "two\nlines".to_owned() });
    }

    #[test]
    fn stalled_or_closed_log_reader_does_not_block_the_runner() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!written_to(writer.as_fd(), 100));
        drop(reader);
        assert!(!written_to(writer.as_fd(), 100));
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        assert!(written_to(null.as_fd(), 100));
    }
}
