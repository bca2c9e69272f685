//! Many clients of streamed responses that stay connected.

use super::message::{self, ChunkParser};
use super::part::{end_with_parent, say};
use super::socket::{ListenerAddress, SocketPoll};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};

/// The part: it reports when every client has received this many bytes, goes on reading, and ends on request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadingClients {
    pub(super) target: ListenerAddress,
    pub(super) connections: usize,
    /// Payload that each client must receive before the report, in bytes.
    pub(super) bytes: usize,
}

struct ReadingClient {
    socket: File,
    head: Vec<u8>,
    chunks: ChunkParser,
    bytes: usize,
}

const ROOM: usize = 64 << 10;

// === impl ReadingClients ===

impl ReadingClients {
    pub(super) fn play(&self) {
        let (call, watch) = (message::call(true, false), SocketPoll::new());
        let visitor = |number| {
            let mut socket = self.target.connect().expect("a connection");
            socket.write_all(&call).expect("a connection");
            watch.add(&socket, number);
            ReadingClient { socket, head: Vec::new(), chunks: ChunkParser::default(), bytes: 0 }
        };
        let visitors: Vec<ReadingClient> = (0..self.connections).map(visitor).collect();
        end_with_parent();
        listen(visitors, watch, self.bytes);
    }
}

fn listen(mut visitors: Vec<ReadingClient>, mut watch: SocketPoll, wanted: usize) -> ! {
    let (mut waiting, mut bytes) = (visitors.len(), vec![0; ROOM]);
    loop {
        for number in watch.wait(None) {
            let visitor = &mut visitors[number];
            let had_enough = visitor.bytes >= wanted;
            visitor.listen(&mut bytes);
            if !had_enough && visitor.bytes >= wanted {
                waiting -= 1;
                if waiting == 0 {
                    say(&visitors.iter().map(|visitor| visitor.bytes).sum::<usize>());
                    break;
                }
            }
        }
    }
}

// === impl ReadingClient ===

impl ReadingClient {
    /// Reads once.
    fn listen(&mut self, bytes: &mut [u8]) {
        let count = self.socket.read(bytes).expect("an answer that goes on");
        assert!(count > 0, "closed in the middle of a response");
        let mut body = &bytes[..count];
        if !self.head.ends_with(b"\r\n\r\n") {
            self.head.extend_from_slice(body);
            let Some(end) = message::head_end(&self.head) else { return };
            message::must_be_good(&self.head);
            body = &body[count - (self.head.len() - end)..];
            self.head.truncate(end);
        }
        let got = &mut self.bytes;
        self.chunks.take(body, |payload| *got += payload.len());
    }
}
