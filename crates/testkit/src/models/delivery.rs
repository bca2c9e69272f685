//! Sending of an answer: with its pace, its framing and its faults.

use super::answer::{Delivery, DeliveryFlaw, Pace};
use super::rendered::{Body, RenderedAnswer};
use super::request::Request;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A connection, of whatever family.
pub(super) trait Stream: Read + Write + AsFd + Send {}

impl<S: Read + Write + AsFd + Send> Stream for S {}

/// Reason why sending has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendStopReason {
    /// The script cuts the answer.
    Cut,
    /// The client has disconnected.
    PeerGone,
    /// The server ends.
    ServerEnds,
}

/// A connection that is written to.
pub(super) struct ClientConnection<'a> {
    pub(super) stream: &'a mut dyn Stream,
    pub(super) server_ends: &'a AtomicBool,
}

/// Body of an answer that is being sent.
struct OutgoingBody<'a, 'b> {
    line: &'b mut ClientConnection<'a>,
    delivery: &'b Delivery,
    is_in_chunks: bool,
    /// Bytes for the next chunk.
    unframed: Vec<u8>,
    chunks: usize,
    /// Bytes that are buffered for the next write.
    unwritten: Vec<u8>,
    written: usize,
    next_byte_at: Instant,
}

/// Interval in which a pause checks for the end of the connection.
const GLANCE: Duration = Duration::from_millis(5);
const BURST: usize = 64 << 10;

/// Sends it all, as far as it may.
pub(super) fn deliver(
    rendered: RenderedAnswer,
    delivery: &Delivery,
    request: &Request,
    line: &mut ClientConnection<'_>,
) -> Result<(), SendStopReason> {
    let is_of_version_1_0 = delivery.is_of_version_1_0 || request.is_of_version_1_0;
    let is_stream = matches!(rendered.body, Body::Events(_));
    let is_in_chunks = !is_of_version_1_0 && (is_stream || !delivery.chunk_sizes.is_empty());
    let is_bare = request.method == "HEAD" || matches!(rendered.status, 204 | 304);
    let version = if is_of_version_1_0 { "1.0" } else { "1.1" };
    let mut head = format!("HTTP/{version} {} {}\r\n", rendered.status, reason(rendered.status));
    for (name, value) in &rendered.headers {
        // Writing to a String can't fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    match &rendered.body {
        _ if is_in_chunks => head.push_str("transfer-encoding: chunked\r\n"),
        Body::Whole(body) => {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        Body::Events(_) => {}
    }
    head.push_str("\r\n");
    line.pause(delivery.delay)?;
    line.write(head.as_bytes())?;
    if is_bare {
        return Ok(());
    }
    let events = match rendered.body {
        Body::Whole(body) => Box::new(std::iter::once(body)),
        Body::Events(events) => events,
    };
    OutgoingBody::new(line, delivery, is_in_chunks).send(events)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        529 => "Overloaded",
        _ => "As Told",
    }
}

// === impl OutgoingBody ===

impl<'a, 'b> OutgoingBody<'a, 'b> {
    fn new(line: &'b mut ClientConnection<'a>, delivery: &'b Delivery, is_in_chunks: bool) -> Self {
        let (unframed, unwritten) = (Vec::new(), Vec::new());
        Self {
            line,
            delivery,
            is_in_chunks,
            unframed,
            chunks: 0,
            unwritten,
            written: 0,
            next_byte_at: Instant::now(),
        }
    }

    fn send(mut self, mut events: impl Iterator<Item = Vec<u8>>) -> Result<(), SendStopReason> {
        let mut next_at = Instant::now();
        for sent in 0.. {
            if self.delivery.flaw == Some(DeliveryFlaw::SilentAfter(sent)) {
                break;
            }
            // An event may hold the time at which it was made: the pause comes first.
            if let (Pace::Every(interval), true) = (self.delivery.pace, sent > 0) {
                next_at += interval;
                self.line.pause(next_at.saturating_duration_since(Instant::now()))?;
            }
            let Some(event) = events.next() else { break };
            let framed = self.framed(&event);
            if self.delivery.flaw == Some(DeliveryFlaw::CutInEvent(sent)) {
                self.write(&framed[..framed.len() / 2])?;
                self.flush()?;
                return Err(SendStopReason::Cut);
            }
            self.write(&framed)?;
        }
        if let Some(DeliveryFlaw::SilentAfter(_)) = self.delivery.flaw {
            self.flush()?;
            return self.line.pause(Duration::MAX);
        }
        let end = self.end();
        self.write(&end)?;
        self.flush()
    }

    /// An event as it goes over the line.
    fn framed(&mut self, event: &[u8]) -> Vec<u8> {
        let sizes = &self.delivery.chunk_sizes;
        match self.is_in_chunks {
            false => event.to_vec(),
            true if event.is_empty() => Vec::new(),
            true if sizes.is_empty() => chunk(event),
            true => {
                self.unframed.extend(event);
                let mut framed = Vec::new();
                while self.unframed.len() >= sizes[self.chunks % sizes.len()] {
                    let rest = self.unframed.split_off(sizes[self.chunks % sizes.len()]);
                    framed.extend(chunk(&self.unframed));
                    self.unframed = rest;
                    self.chunks += 1;
                }
                framed
            }
        }
    }

    fn end(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.unframed);
        let rest = if rest.is_empty() { rest } else { chunk(&rest) };
        if self.is_in_chunks { [&rest[..], b"0\r\n\r\n"].concat() } else { rest }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SendStopReason> {
        let left = match self.delivery.flaw {
            Some(DeliveryFlaw::CutAfterBytes(most)) => most - self.written,
            _ => usize::MAX,
        };
        let bytes = &bytes[..bytes.len().min(left)];
        self.written += bytes.len();
        match self.delivery.pace {
            Pace::EachByte(interval) => {
                for byte in bytes {
                    self.line.pause(self.next_byte_at.saturating_duration_since(Instant::now()))?;
                    self.line.write(&[*byte])?;
                    self.next_byte_at += interval;
                }
            }
            Pace::Burst => {
                self.unwritten.extend(bytes);
                if self.unwritten.len() >= BURST {
                    self.flush()?;
                }
            }
            Pace::EachEvent | Pace::Every(_) => self.line.write(bytes)?,
        }
        if bytes.len() == left {
            self.flush()?;
            return Err(SendStopReason::Cut);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SendStopReason> {
        self.line.write(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

// === impl ClientConnection ===

impl ClientConnection<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SendStopReason> {
        self.stream.write_all(bytes).map_err(|_| match self.server_ends.load(Ordering::Relaxed) {
            true => SendStopReason::ServerEnds,
            false => SendStopReason::PeerGone,
        })
    }

    /// Waits as long as the client is connected.
    pub(super) fn pause(&mut self, length: Duration) -> Result<(), SendStopReason> {
        let begun = Instant::now();
        loop {
            let left = length.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            if self.server_ends.load(Ordering::Relaxed) {
                return Err(SendStopReason::ServerEnds);
            }
            if self.peer_is_gone() {
                return Err(SendStopReason::PeerGone);
            }
            std::thread::sleep(left.min(GLANCE));
        }
    }

    fn peer_is_gone(&mut self) -> bool {
        use rustix::net::RecvFlags;
        let looked =
            rustix::net::recv(self.stream.as_fd(), &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        match looked {
            Ok((_, length)) => length == 0,
            Err(error) => error != rustix::io::Errno::AGAIN,
        }
    }
}
