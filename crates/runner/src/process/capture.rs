//! An output of a program, kept up to a limit: the beginning of it, or its beginning and its end.

use crate::content::Content;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Part of an output that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureLimit {
    /// Keep that many bytes from the beginning. A program that prints more is killed.
    First(usize),
    /// Keep that many bytes in all, half of them from the beginning and half from the end, whatever the output's
    /// length.
    Ends(usize),
}

/// An output that is being read.
#[derive(Debug)]
pub(crate) struct Capture {
    pipe: Option<OwnedFd>,
    kept: Vec<u8>,
    cap: usize,
    /// End of the output, if that is kept.
    tail: Option<VecDeque<u8>>,
    read: u64,
    overflowed: bool,
    buffer: Vec<u8>,
}

/// An output that has been read.
#[derive(Debug)]
pub(crate) struct CapturedOutput {
    /// Beginning, up to the limit.
    pub(crate) bytes: Vec<u8>,
    /// End, if it is kept and is not part of the beginning.
    pub(crate) tail: Vec<u8>,
    /// Number of bytes between the two.
    pub(crate) left_out: u64,
    /// True if there were more bytes than are kept.
    pub(crate) truncated: bool,
}

const BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of bytes that are read when the program is gone: the largest size of a pipe. Anything beyond comes
/// from a process that is still alive.
const DRAINED_BYTES: usize = 4 << 20;

// === impl Capture ===

impl Capture {
    /// Starts to keep what comes through `pipe`.
    pub(super) fn new(pipe: OwnedFd, keep: CaptureLimit) -> Self {
        // If the pipe can't be made non-blocking, reads may block.
        let _ = rustix::fs::fcntl_getfl(&pipe)
            .and_then(|flags| rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK));
        let (cap, tail) = match keep {
            CaptureLimit::First(cap) => (cap, None),
            CaptureLimit::Ends(cap) => (cap / 2, Some(VecDeque::new())),
        };
        let buffer = vec![0; BUFFER_BYTES];
        Self { pipe: Some(pipe), kept: Vec::new(), cap, tail, read: 0, overflowed: false, buffer }
    }

    /// Returns the pipe to wait on, as long as data may come.
    pub(super) fn pipe(&self) -> Option<&OwnedFd> {
        self.pipe.as_ref()
    }

    /// Returns true if more data has come than is allowed.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Reads what is available, a buffer's worth at most. Returns the number of bytes.
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
        let (first, rest) = news.split_at(read.min(room));
        self.kept.extend_from_slice(first);
        self.read += read as u64;
        match &mut self.tail {
            Some(tail) => {
                tail.extend(&rest[rest.len().saturating_sub(self.cap)..]);
                tail.drain(..tail.len().saturating_sub(self.cap));
            }
            None => self.overflowed |= !rest.is_empty(),
        }
        progress(news);
        read
    }

    /// Reads the rest of the pipe.
    pub(super) fn drain(&mut self, progress: &mut impl FnMut(&[u8])) {
        let mut drained = 0;
        while drained < DRAINED_BYTES {
            match self.read_once(progress) {
                0 => return,
                read => drained += read,
            }
        }
    }

    pub(super) fn finish(self) -> CapturedOutput {
        let tail: Vec<u8> = self.tail.unwrap_or_default().into();
        let left_out = self.read - (self.kept.len() + tail.len()) as u64;
        CapturedOutput { bytes: self.kept, tail, left_out, truncated: left_out > 0 }
    }
}

// === impl CapturedOutput ===

impl CapturedOutput {
    /// The bytes as a result holds them.
    pub(crate) fn into_content(self) -> Content {
        match self.truncated {
            true => Content::cut(self.bytes),
            false => Content::whole(self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn captured(keep: CaptureLimit, printed: &[u8]) -> CapturedOutput {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut capture = Capture::new(reader.into(), keep);
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(printed).unwrap());
            while capture.pipe().is_some() {
                capture.read_once(&mut |_| {});
            }
        });
        capture.finish()
    }

    #[test]
    fn captured_ends_never_overlap_and_omitted_bytes_are_counted() {
        let printed: Vec<u8> = (0..200_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
        for length in [0, 1, 5, 6, 9, 10, 11, 100, 65_535, 65_536, 65_537, 200_000] {
            let kept = captured(CaptureLimit::Ends(10), &printed[..length]);
            assert_eq!(kept.bytes, printed[..length.min(5)], "{length}");
            assert_eq!(
                kept.tail,
                printed[length.saturating_sub(5).max(kept.bytes.len())..length],
                "{length}"
            );
            let both = u64::try_from(kept.bytes.len() + kept.tail.len()).unwrap();
            assert_eq!(kept.left_out + both, u64::try_from(length).unwrap());
            assert_eq!(kept.truncated, length > 10);
        }
        let first = captured(CaptureLimit::First(10), &printed[..100]);
        assert_eq!((first.bytes.len(), first.tail.len(), first.left_out), (10, 0, 90));
    }
}
