//! A client of streamed responses that measures the delay of every event.

use super::load::at;
use super::message::{self, ChunkParser, StreamPiece};
use super::socket::ListenerAddress;
use super::source::now_ns;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

/// The part.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StreamListener {
    pub(super) target: ListenerAddress,
    /// Format of the events.
    pub(super) piece: StreamPiece,
    /// Number of events in a response.
    pub(super) events: usize,
    /// Number of responses, one after another, on one connection.
    pub(super) times: usize,
    /// True if it calls the provider directly.
    pub(super) is_direct: bool,
}

/// The measurements of a listener.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListenerFigures {
    /// Time from the call to the end of each response, in milliseconds.
    pub(super) whole_ms: Vec<f64>,
    /// Delay from an event's timestamp until it was read; `None` without timestamps.
    pub(super) delay: Option<Delay>,
    /// Total number of reads.
    pub(super) reads: usize,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Delay {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// The events of one response.
struct Events {
    length: usize,
    stamp: std::ops::Range<usize>,
    /// Beginning of an incomplete event.
    kept: Vec<u8>,
    count: usize,
}

const ROOM: usize = 64 << 10;

// === impl StreamListener ===

impl StreamListener {
    pub(super) fn play(&self) -> ListenerFigures {
        let call = message::call(true, self.is_direct);
        let mut socket = self.target.connect().expect("a connection");
        let (mut delays, mut reads) = (Vec::new(), 0);
        let whole_ms = (0..self.times)
            .map(|_| {
                let begun = Instant::now();
                socket.write_all(&call).expect("a connection that is kept");
                reads += self.hear(&mut socket, &mut delays);
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        delays.sort_unstable();
        let delay = (!delays.is_empty()).then(|| Delay { p50_us: at(&delays, 50), p99_us: at(&delays, 99) });
        ListenerFigures { whole_ms, delay, reads }
    }

    /// Reads one response, and returns the number of reads.
    fn hear(&self, socket: &mut File, delays: &mut Vec<u64>) -> usize {
        let (mut bytes, mut head) = (vec![0; ROOM], Vec::new());
        let (mut chunks, mut events, mut reads) = (ChunkParser::default(), Events::of(self.piece), 0);
        loop {
            let count = socket.read(&mut bytes).expect("an answer");
            assert!(count > 0, "closed before the end of an answer");
            let now = now_ns();
            reads += 1;
            let mut body = &bytes[..count];
            if !head.ends_with(b"\r\n\r\n") {
                head.extend_from_slice(body);
                let Some(end) = message::head_end(&head) else { continue };
                message::must_be_good(&head);
                body = &body[count - (head.len() - end)..];
                head.truncate(end);
            }
            let is_done = chunks.take(body, |payload| {
                events.take(payload, |stamp| delays.push(now.saturating_sub(stamp)));
            });
            if is_done {
                assert_eq!(events.count, self.events, "events are missing");
                assert_eq!(events.kept, message::LAST_EVENT, "another end");
                return reads;
            }
        }
    }
}

// === impl Events ===

impl Events {
    fn of(piece: StreamPiece) -> Self {
        Self { length: piece.event().len(), stamp: piece.stamp(), kept: Vec::new(), count: 0 }
    }

    /// Consumes payload that follows the previous one, and passes on the timestamps in it.
    fn take(&mut self, mut payload: &[u8], mut stamped: impl FnMut(u64)) {
        if !self.kept.is_empty() {
            let (here, rest) = payload.split_at(payload.len().min(self.length - self.kept.len()));
            self.kept.extend_from_slice(here);
            payload = rest;
            if self.kept.len() == self.length {
                let event = std::mem::take(&mut self.kept);
                self.one(&event, &mut stamped);
            }
        }
        let whole = payload.chunks_exact(self.length);
        self.kept.extend_from_slice(whole.remainder());
        whole.for_each(|event| self.one(event, &mut stamped));
    }

    fn one(&mut self, event: &[u8], stamped: &mut impl FnMut(u64)) {
        assert!(event.starts_with(b"data: {") && event.ends_with(b"}\n\n"), "the received data is no event");
        self.count += 1;
        let stamp = std::str::from_utf8(&event[self.stamp.clone()]).ok().and_then(|text| text.parse().ok());
        match stamp.expect("a stamp") {
            0 => {}
            stamp => stamped(stamp),
        }
    }
}
