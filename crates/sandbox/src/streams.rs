//! The streams of a program: nothing to read, and a pipe for each of what it prints and what it complains of.

use belljar_confine::plan::Stdio;
pub use belljar_contract::worker::event::Stream;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The host's ends of a program's pipes; `None` for a stream that has ended.
#[derive(Debug)]
pub struct PipeEnds {
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
}

/// The host's ends of the pipes of a program that is spoken with.
#[derive(Debug)]
pub struct PipedStreams {
    /// Standard input of the program.
    pub input: OwnedFd,
    /// Standard output of the program.
    pub output: OwnedFd,
    /// Standard error of the program.
    pub errors: OwnedFd,
}

const PORTION: usize = 64 << 10;

/// Maximum number of portions read in a row: a program that prints without end must not hold up the watch over its time.
const MOST_PORTIONS: usize = 16;

// === impl PipeEnds ===

impl PipeEnds {
    /// Makes the streams, with the program's ends.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn make() -> Result<(Stdio, Self), Errno> {
        let nothing = openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (output, write_output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (errors, write_errors) = pipe_with(PipeFlags::CLOEXEC)?;
        for ours in [&output, &errors] {
            rustix::io::ioctl_fionbio(ours, true)?;
        }
        let streams = Self { output: Some(output), errors: Some(errors) };
        Ok((Stdio::Descriptors([nothing, write_output, write_errors]), streams))
    }

    /// Adds the descriptors to wait for.
    pub fn wait_for<'a>(&'a self, ready: &mut Vec<PollFd<'a>>) {
        let open = [&self.output, &self.errors].into_iter().flatten();
        ready.extend(open.map(|stream| PollFd::new(stream, PollFlags::IN)));
    }

    /// Reads what is there, in bounded portions, without waiting for more.
    pub fn read(&mut self, mut take: impl FnMut(Stream, &[u8])) {
        let pairs = [(&mut self.output, Stream::Stdout), (&mut self.errors, Stream::Stderr)];
        for (stream, which) in pairs {
            let is_over =
                stream.as_ref().is_some_and(|pipe| read_available(pipe, |bytes| take(which, bytes)));
            if is_over {
                *stream = None;
            }
        }
    }
}

// === impl PipedStreams ===

impl PipedStreams {
    /// Makes the streams, with the program's ends.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn make() -> Result<(Stdio, Self), Errno> {
        let (read, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (output, printed) = pipe_with(PipeFlags::CLOEXEC)?;
        let (errors, complained) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Stdio::Descriptors([read, printed, complained]), Self { input, output, errors }))
    }
}

/// Reads what is there; whether nothing more will come.
fn read_available(pipe: &OwnedFd, mut take: impl FnMut(&[u8])) -> bool {
    let mut buffer = vec![0; PORTION];
    for _ in 0..MOST_PORTIONS {
        match rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut buffer[..])) {
            Ok(0) => return true,
            Ok(read) => take(&buffer[..read]),
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    false
}
