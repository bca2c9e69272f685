//! A provider that streams: some events at once, and others each at its time, with a timestamp.

use super::message::{self, StreamPiece};
use super::part::{end_with_parent, say};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The part, which prints its address. Each client has a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StreamSource {
    /// Format of its events.
    pub(super) piece: StreamPiece,
    /// Number of events that are sent at once.
    pub(super) at_once: usize,
    /// Number of those per write.
    pub(super) in_one_write: usize,
    /// Number of events that are sent one by one.
    pub(super) one_by_one: usize,
    /// Time between two of those.
    pub(super) gap: Duration,
}

const STACK_BYTES: usize = 64 << 10;

/// Returns the time in nanoseconds of the clock that all processes of a machine share.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(now.tv_nsec).unwrap_or_default()
}

// === impl StreamSource ===

impl StreamSource {
    pub(super) fn play(&self) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        say(&listener.local_addr().expect("an address"));
        end_with_parent();
        loop {
            let (stream, _) = listener.accept().expect("a client connection");
            let source = self.clone();
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            // A client that disconnects early ends the thread.
            thread.spawn(move || drop(source.serve(stream))).expect("a thread");
        }
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut inbox, mut bytes) = (Vec::new(), vec![0; 8 << 10]);
        loop {
            let length = loop {
                if let Some(length) = message::whole(&inbox) {
                    break length;
                }
                match stream.read(&mut bytes)? {
                    0 => return Ok(()),
                    count => inbox.extend_from_slice(&bytes[..count]),
                }
            };
            match message::is_from_host(&inbox[..length]) {
                true => self.tell(&mut stream)?,
                false => stream.write_all(message::NOT_FROM_HOST)?,
            }
            inbox.drain(..length);
        }
    }

    fn tell(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(message::STREAM_HEAD)?;
        let mut event = chunk(&self.piece.event());
        let together = event.repeat(self.in_one_write);
        let mut left = self.at_once;
        while left > 0 {
            let now = left.min(self.in_one_write);
            stream.write_all(&together[..now * event.len()])?;
            left -= now;
        }
        let in_event = self.piece.stamp();
        let before = chunk_head(self.piece.event().len()).len();
        let stamp = before + in_event.start..before + in_event.end;
        let mut due = Instant::now();
        for _ in 0..self.one_by_one {
            due += self.gap;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            write!(&mut event[stamp.clone()], "{:020}", now_ns())?;
            stream.write_all(&event)?;
        }
        stream.write_all(&[&chunk(message::LAST_EVENT)[..], b"0\r\n\r\n"].concat())
    }
}

fn chunk_head(length: usize) -> String {
    format!("{length:x}\r\n")
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [chunk_head(bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
