//! Our own program in a container, while it packs or unpacks something.
//!
//! It runs as the sandbox's user, so a program inside may stop it, or hold its streams open when it is gone. Nothing here
//! waits for longer than [`PATIENCE`] without progress. When the copier has ended, nothing more is expected.

use super::execution::DockerExecution;
use super::frame::StartRequest;
use super::own_program;
use super::watched::WatchedContainer;
use crate::archive;
use crate::backend::{BackendError, Execution};
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A packer or unpacker that runs.
#[derive(Debug)]
pub(super) struct Copier<'p> {
    execution: DockerExecution,
    path: &'p str,
    /// Stream with the copier's error.
    said: OwnedFd,
    /// Pipe by which the archive goes in or comes out.
    archive: OwnedFd,
}

/// Event to wait for.
enum CopierEvent {
    Stream,
    Ended,
}

/// A copier that moves nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(30);

const PORTION: usize = 64 << 10;

/// Maximum length of its output: a number and a path.
const LONGEST_WORD: usize = 8192;

// === impl Copier ===

impl<'p> Copier<'p> {
    /// Begins to pack what is at `path`.
    pub(super) fn pack(container: &Arc<WatchedContainer>, path: &'p str) -> Result<Self, BackendError> {
        let (archive, output) = pipe().map_err(archive::failed(path))?;
        Self::begin(container, (own_program::PACK, path), archive, |nothing| (nothing, output))
    }

    /// Begins to unpack below `path`.
    pub(super) fn unpack(container: &Arc<WatchedContainer>, path: &'p str) -> Result<Self, BackendError> {
        let (input, archive) = pipe().map_err(archive::failed(path))?;
        Self::begin(container, (own_program::UNPACK, path), archive, |nothing| (input, nothing))
    }

    fn begin(
        container: &Arc<WatchedContainer>,
        (act, path): (&str, &'p str),
        archive: OwnedFd,
        streams: impl FnOnce(OwnedFd) -> (OwnedFd, OwnedFd),
    ) -> Result<Self, BackendError> {
        let (said, errors) = pipe().map_err(archive::failed(path))?;
        for ours in [&said, &archive] {
            fcntl_setfl(ours, OFlags::NONBLOCK).map_err(|errno| archive::failed(path)(errno.into()))?;
        }
        let (input, output) = streams(nothing().map_err(archive::failed(path))?);
        let argv =
            [&format!("/{}", own_program::PATH), act, path].map(|text| text.as_bytes().to_vec()).into();
        let start = StartRequest { argv, env: Vec::new(), directory: b"/".to_vec(), has_terminal: false };
        let stdio = Stdio::Descriptors([input, output, errors]);
        let execution = DockerExecution::start(container, start, stdio)?;
        Ok(Self { execution, path, said, archive })
    }

    /// Gives it the archive to unpack.
    pub(super) fn give(self, from: &mut dyn Read) -> Result<(), BackendError> {
        let given = self.write_all(from);
        if given.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            self.execution.kill()?;
        }
        let Self { execution, path, said, archive } = self;
        drop(archive);
        // The copier's own error is more precise than the closed pipe.
        finish(execution, &said, path)?;
        given.map_err(archive::failed(path))
    }

    /// Takes the archive that it packs.
    pub(super) fn take(self, to: &mut dyn Write) -> Result<(), BackendError> {
        let taken = read_to_end(&self.execution, &self.archive, |bytes| to.write_all(bytes));
        let Self { execution, path, said, archive } = self;
        // The packing program sees that its output has no reader any more.
        drop(archive);
        if taken.is_err() {
            execution.kill()?;
        }
        match (finish(execution, &said, path), taken) {
            (Ok(()), taken) => taken.map_err(archive::failed(path)),
            // It was killed for that.
            (Err(_), Err(error)) => Err(archive::failed(path)(error)),
            (failed, Ok(())) => failed,
        }
    }

    fn write_all(&self, from: &mut dyn Read) -> io::Result<()> {
        let mut buffer = vec![0; PORTION];
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut left = buffer.get(..read).unwrap_or_default();
            while !left.is_empty() {
                if let CopierEvent::Ended = ready(&self.execution, &self.archive, PollFlags::OUT)? {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                match rustix::io::write(&self.archive, left) {
                    Ok(written) => left = left.get(written..).unwrap_or_default(),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
    }
}

/// Waits until the stream is ready, or nothing more will come from it.
fn ready(execution: &DockerExecution, stream: &OwnedFd, wanted: PollFlags) -> io::Result<CopierEvent> {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut watched =
            [PollFd::new(stream, wanted), PollFd::from_borrowed_fd(execution.ending(), PollFlags::IN)];
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let found = rustix::io::retry_on_intr(|| poll(&mut watched, Some(&left)))?;
        match watched.map(|one| !one.revents().is_empty()) {
            [_, true] => return Ok(CopierEvent::Ended),
            [true, _] => return Ok(CopierEvent::Stream),
            _ if found == 0 => return Err(Errno::TIMEDOUT.into()),
            _ => {}
        }
    }
}

/// Reads a stream to its end, or until the program has ended and what it has written has been read.
fn read_to_end(
    execution: &DockerExecution,
    stream: &OwnedFd,
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; PORTION];
    // Data that the pipe holds when the program has ended; another process may go on filling it.
    let mut last: Option<usize> = None;
    while last != Some(0) {
        if last.is_none()
            && let CopierEvent::Ended = ready(execution, stream, PollFlags::IN)?
        {
            last = Some(usize::try_from(rustix::io::ioctl_fionread(stream)?).unwrap_or(0));
            continue;
        }
        let most = last.unwrap_or(PORTION).min(PORTION);
        match rustix::io::read(stream, buffer.get_mut(..most).unwrap_or_default()) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                put(buffer.get(..read).unwrap_or_default())?;
                last = last.map(|last| last - read);
            }
            Err(Errno::AGAIN) if last.is_some() => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Waits for the copier's end, and returns its error, if any.
fn finish(mut execution: DockerExecution, said: &OwnedFd, path: &str) -> Result<(), BackendError> {
    let failed = archive::failed(path);
    let mut text = Vec::new();
    let heard = read_to_end(&execution, said, |bytes| {
        let room = LONGEST_WORD - text.len();
        text.extend(bytes.iter().take(room));
        Ok(())
    });
    // A process that stopped the copier may also have stopped it after its last word.
    let ending = match heard {
        Ok(()) => execution.wait_until(Some(Instant::now() + PATIENCE))?,
        Err(error) => {
            execution.kill()?;
            return Err(failed(error));
        }
    };
    let text = String::from_utf8_lossy(&text);
    match ending.map(|ending| ending.outcome) {
        Some(ProgramOutcome::Exited(0)) => Ok(()),
        Some(ProgramOutcome::Exited(code)) if code == own_program::COPY_FAILED => {
            let (errno, path) = text.split_once(' ').unwrap_or(("", path));
            let errno = errno.parse().unwrap_or(Errno::IO.raw_os_error());
            Err(BackendError::Copy { path: path.to_owned(), source: io::Error::from_raw_os_error(errno) })
        }
        Some(ProgramOutcome::Killed) => Err(BackendError::Gone),
        Some(_) => Err(failed(io::Error::other(text.into_owned()))),
        None => {
            execution.kill()?;
            Err(failed(Errno::TIMEDOUT.into()))
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

fn nothing() -> io::Result<OwnedFd> {
    Ok(openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}
