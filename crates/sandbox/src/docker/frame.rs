//! Protocol between host and relay, over the one stream that the engine carries between them.
//!
//! ```text
//! length of head │ length of body │ head: what it is about │ body: bytes of a stream
//!   4 bytes, LE       4 bytes, LE      as postcard writes it
//! ```
//! Neither side sends more bytes of a stream than the other has room for: [`WINDOW`] at first, and then as many more as the
//! other reports as consumed. So a stream without a reader holds up no other.

use super::measured::MeasuredIsolation;
use belljar_confine::sealed::SandboxEnding;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum number of bytes of one stream in flight.
pub(super) const WINDOW: usize = 256 << 10;

/// Bodies are no longer.
pub(super) const LONGEST_BODY: usize = 32 << 10;

/// Heads are no longer: what a program is started with must fit.
const LONGEST_HEAD: usize = 1 << 20;

const LENGTHS: usize = 8;

/// A message of the host. The first number names the program, or the question, that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HostMessage {
    /// Start a program.
    Start(u32, StartRequest),
    /// The body is for its input; an empty one ends that.
    Input(u32),
    /// The host has consumed that many bytes of the program's output.
    Took(u32, OutputStream, u32),
    /// The program's output has no reader any more.
    Shut(u32, OutputStream),
    /// Send a signal to its process group.
    Signal(u32, i32),
    /// Kill it and what it has started.
    Kill(u32),
    /// The terminal has that many rows and columns.
    Resize(u32, u16, u16),
    /// Stop everything, or let everything go on.
    StopAll(u32, bool),
    /// Report the number of processes.
    Count(u32),
}

/// A message of the relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RelayMessage {
    /// PID 1 has put up its walls, and this is how it is inside.
    Ready(Box<MeasuredIsolation>),
    /// The sandbox could not be made.
    Failed(String),
    /// The program runs.
    Started(u32),
    /// The program doesn't run; the errno, and what it is about.
    NotStarted(u32, i32, String),
    /// The body is its output; an empty one ends that.
    Output(u32, OutputStream),
    /// The program has consumed that many bytes of its input.
    InputTook(u32, u32),
    /// The program takes no more input.
    InputShut(u32),
    /// The program has ended.
    Ended(u32, SandboxEnding),
    /// That many processes run.
    Counted(u32, u64),
    /// The order was carried out.
    Done(u32),
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartRequest {
    pub(super) argv: Vec<Vec<u8>>,
    /// Environment, as `NAME=value`.
    pub(super) env: Vec<Vec<u8>>,
    pub(super) directory: Vec<u8>,
    pub(super) has_terminal: bool,
}

/// Which of a program's outputs; what comes from a terminal is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OutputStream {
    First,
    Errors,
}

// === impl RelayMessage ===

impl RelayMessage {
    /// The program or the question.
    pub(super) fn about(&self) -> u32 {
        match self {
            Self::Ready(_) | Self::Failed(_) => 0,
            Self::Started(id)
            | Self::NotStarted(id, ..)
            | Self::Output(id, _)
            | Self::InputTook(id, _)
            | Self::InputShut(id)
            | Self::Ended(id, _)
            | Self::Counted(id, _)
            | Self::Done(id) => *id,
        }
    }
}

/// Puts what arrives in pieces together to frames.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
}

/// Bytes that are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("received an invalid frame")]
pub(super) struct InvalidFrame;

/// A frame as it goes out.
pub(super) fn encode(head: &impl Serialize, body: &[u8]) -> Result<Vec<u8>, InvalidFrame> {
    let head = postcard::to_stdvec(head).map_err(|_| InvalidFrame)?;
    if head.len() > LONGEST_HEAD || body.len() > LONGEST_BODY {
        return Err(InvalidFrame);
    }
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(|_| InvalidFrame);
    Ok([&length(&head)?[..], &length(body)?, &head, body].concat())
}

// === impl Decoder ===

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next frame, if it is complete.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Vec<u8>)>, InvalidFrame> {
        let Some((lengths, rest)) = self.bytes.split_at_checked(LENGTHS) else { return Ok(None) };
        let length = |at: usize| {
            let bytes = lengths.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            bytes.map(u32::from_le_bytes).and_then(|length| usize::try_from(length).ok()).ok_or(InvalidFrame)
        };
        let (head, body) = (length(0)?, length(4)?);
        if head > LONGEST_HEAD || body > LONGEST_BODY {
            return Err(InvalidFrame);
        }
        let Some((head_bytes, rest)) = rest.split_at_checked(head) else { return Ok(None) };
        let Some(body_bytes) = rest.get(..body) else { return Ok(None) };
        let frame = (postcard::from_bytes(head_bytes).map_err(|_| InvalidFrame)?, body_bytes.to_vec());
        self.bytes.drain(..LENGTHS + head + body);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let frames = [
            (RelayMessage::Started(7), Vec::new()),
            (RelayMessage::Output(7, OutputStream::Errors), vec![b'x'; LONGEST_BODY]),
            (RelayMessage::NotStarted(8, 2, "no-such-program".to_owned()), b"y".to_vec()),
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(|(head, body)| encode(head, body).unwrap()).collect();
        for piece in [1, 7, 4096, bytes.len()] {
            let (mut decoder, mut found) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                decoder.push(piece);
                while let Some(frame) = decoder.next::<RelayMessage>().unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, frames);
        }
    }

    #[test]
    fn what_is_too_long_or_nonsense_is_no_frame() {
        encode(&RelayMessage::Started(1), &vec![0; LONGEST_BODY + 1]).unwrap_err();
        for bytes in [&[0xff; 8][..], &[1, 0, 0, 0, 0, 0, 0, 0, 0x7f]] {
            let mut decoder = Decoder::default();
            decoder.push(bytes);
            assert_eq!(decoder.next::<RelayMessage>(), Err(InvalidFrame));
        }
    }
}
