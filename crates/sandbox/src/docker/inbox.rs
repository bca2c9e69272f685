//! Inbox for the frames about one program, or for the answer to one question.

use super::frame::{RelayMessage, WINDOW};
use crate::execution::readable;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Inbox that is filled by the channel and emptied by the receiver of the frames.
#[derive(Debug)]
pub(super) struct Inbox {
    frames: Mutex<FrameQueue>,
    /// Readable when there is something.
    bell: OwnedFd,
}

#[derive(Debug, Default)]
struct FrameQueue {
    waiting: VecDeque<(RelayMessage, Vec<u8>)>,
    bytes: usize,
    is_closed: bool,
}

/// Maximum number of frames: one for each byte of its input that a program consumes, and some more.
const MOST_FRAMES: usize = 2 * WINDOW;

/// Next frame of an inbox.
#[derive(Debug)]
pub(super) enum NextFrame {
    Frame(RelayMessage, Vec<u8>),
    /// No frame yet.
    Nothing,
    /// No frame, and no further one will come.
    Closed,
}

// === impl Inbox ===

impl Inbox {
    pub(super) fn new() -> Result<Self, Errno> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { frames: Mutex::default(), bell })
    }

    fn frames(&self) -> MutexGuard<'_, FrameQueue> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame. Returns false when there are more than our own relay would ever send before they are read.
    pub(super) fn put(&self, frame: RelayMessage, body: Vec<u8>) -> bool {
        let mut frames = self.frames();
        if frames.bytes + body.len() > 4 * WINDOW || frames.waiting.len() > MOST_FRAMES {
            return false;
        }
        frames.bytes += body.len();
        frames.waiting.push_back((frame, body));
        drop(frames);
        self.ring();
        true
    }

    /// Closes the inbox: no further frame will come.
    pub(super) fn close(&self) {
        self.frames().is_closed = true;
        self.ring();
    }

    /// Wakes a waiting receiver.
    pub(super) fn ring(&self) {
        ring(&self.bell);
    }

    /// Returns the next frame. The bell stays readable until this has returned that there is none.
    pub(super) fn next(&self) -> NextFrame {
        let mut frames = self.frames();
        match frames.waiting.pop_front() {
            Some((frame, body)) => {
                frames.bytes -= body.len();
                NextFrame::Frame(frame, body)
            }
            None if frames.is_closed => NextFrame::Closed,
            None => {
                let _ = rustix::io::read(&self.bell, &mut [0; 8]);
                NextFrame::Nothing
            }
        }
    }

    /// Waits for the next frame, until a moment.
    pub(super) fn wait(&self, until: Instant) -> NextFrame {
        loop {
            match self.next() {
                NextFrame::Nothing if Instant::now() >= until => return NextFrame::Nothing,
                NextFrame::Nothing => {
                    let _ = readable(self.as_fd(), Some(until));
                }
                found => return found,
            }
        }
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Makes an event descriptor readable.
pub(super) fn ring(bell: &OwnedFd) {
    // One that is full already is readable.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docker::frame::OutputStream;

    #[test]
    fn whoever_floods_it_is_refused() {
        let inbox = Inbox::new().unwrap();
        let piece = vec![0; WINDOW / 4];
        let taken =
            (0..100).take_while(|_| inbox.put(RelayMessage::Output(1, OutputStream::First), piece.clone()));
        assert_eq!(taken.count(), 16);
        let inbox = Inbox::new().unwrap();
        assert!((0..=MOST_FRAMES).all(|_| inbox.put(RelayMessage::InputTook(1, 1), Vec::new())));
        assert!(!inbox.put(RelayMessage::InputTook(1, 1), Vec::new()));
    }

    #[test]
    fn what_came_before_the_end_is_there_after_it() {
        let inbox = Inbox::new().unwrap();
        assert!(matches!(inbox.wait(Instant::now()), NextFrame::Nothing));
        inbox.put(RelayMessage::Done(1), Vec::new());
        inbox.close();
        assert!(readable(inbox.as_fd(), Some(Instant::now())).unwrap());
        assert!(matches!(inbox.wait(Instant::now()), NextFrame::Frame(RelayMessage::Done(1), _)));
        assert!(matches!(inbox.next(), NextFrame::Closed));
    }
}
