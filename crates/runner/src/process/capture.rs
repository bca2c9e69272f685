//! One output of a program, kept up to a cap.

use crate::content::Content;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// An output that is being read.
#[derive(Debug)]
pub(crate) struct Capture {
    pipe: Option<OwnedFd>,
    kept: Vec<u8>,
    cap: usize,
    overflowed: bool,
    buffer: Vec<u8>,
}

/// An output that has been read.
#[derive(Debug)]
pub(crate) struct Captured {
    /// The first bytes, up to the cap.
    pub(crate) bytes: Vec<u8>,
    /// Whether there were more.
    pub(crate) truncated: bool,
}

const BUFFER_BYTES: usize = 64 << 10;

/// As much as a pipe holds at its largest is taken when the program is gone; what comes after that comes from
/// somebody who isn't gone.
const DRAINED_BYTES: usize = 4 << 20;

// === impl Capture ===

impl Capture {
    /// Starts to keep what comes through `pipe`, up to `cap` bytes.
    pub(super) fn new(pipe: OwnedFd, cap: usize) -> Self {
        // A pipe that can't be made non-blocking is no pipe; reading it is then as good as it gets.
        let _ = rustix::fs::fcntl_getfl(&pipe)
            .and_then(|flags| rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK));
        Self { pipe: Some(pipe), kept: Vec::new(), cap, overflowed: false, buffer: vec![0; BUFFER_BYTES] }
    }

    /// What to wait on, as long as something may come.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Whether more has come than is kept.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Takes what is there, a buffer's worth at most. Returns how much.
    pub(super) fn read_once(&mut self, progress: &mut impl FnMut(&[u8])) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let read = match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(read) if read > 0 => read,
            Err(Errno::AGAIN | Errno::INTR) => return 0,
            Ok(_) | Err(_) => {
                self.pipe = None;
                return 0;
            }
        };
        let news = &self.buffer[..read];
        let room = self.cap - self.kept.len();
        self.kept.extend_from_slice(&news[..read.min(room)]);
        self.overflowed |= read > room;
        progress(news);
        read
    }

    /// Takes what is left in the pipe.
    pub(super) fn drain(&mut self, progress: &mut impl FnMut(&[u8])) {
        let mut drained = 0;
        while drained < DRAINED_BYTES {
            match self.read_once(progress) {
                0 => return,
                read => drained += read,
            }
        }
    }

    pub(super) fn finish(self) -> Captured {
        Captured { bytes: self.kept, truncated: self.overflowed }
    }
}

// === impl Captured ===

impl Captured {
    /// The bytes as a result holds them.
    pub(crate) fn into_content(self) -> Content {
        match self.truncated {
            true => Content::cut(self.bytes),
            false => Content::whole(self.bytes),
        }
    }
}
