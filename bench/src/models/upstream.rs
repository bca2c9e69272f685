//! A provider that gives every call the same response, as fast as possible.

use super::message;
use super::part::{end_with_parent, say};
use super::socket::SocketPoll;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

/// The part: one thread, which prints its address.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Upstream;

/// A connected client.
struct ConnectedClient {
    socket: File,
    inbox: Vec<u8>,
    is_known: bool,
}

const ROOM: usize = 16 << 10;

// === impl Upstream ===

impl Upstream {
    pub(super) fn play(&self) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (mut watch, mut callers) = (SocketPoll::new(), Vec::<Option<ConnectedClient>>::new());
        let door = number(&listener);
        watch.add(&listener, door);
        say(&listener.local_addr().expect("an address"));
        end_with_parent();
        let answer = message::answer();
        loop {
            let ready: Vec<usize> = watch.wait(None).collect();
            for number in ready {
                if number == door {
                    let caller = ConnectedClient::accept(&listener);
                    let number = self::number(&caller.socket);
                    watch.add(&caller.socket, number);
                    callers.resize_with(callers.len().max(number + 1), || None);
                    callers[number] = Some(caller);
                } else if callers[number].as_mut().is_some_and(|caller| !caller.answer(&answer)) {
                    callers[number] = None;
                }
            }
        }
    }
}

fn number(socket: &impl AsRawFd) -> usize {
    usize::try_from(socket.as_raw_fd()).expect("a descriptor that is open")
}

// === impl ConnectedClient ===

impl ConnectedClient {
    fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("a client connection");
        stream.set_nodelay(true).expect("a socket of TCP");
        Self { socket: OwnedFd::from(stream).into(), inbox: Vec::with_capacity(ROOM), is_known: false }
    }

    /// Reads once and answers complete calls. Returns false if the client has disconnected.
    fn answer(&mut self, answer: &[u8]) -> bool {
        let mut bytes = [0; ROOM];
        let count = match self.socket.read(&mut bytes) {
            Ok(0) | Err(_) => return false,
            Ok(count) => count,
        };
        self.inbox.extend_from_slice(&bytes[..count]);
        while let Some(length) = message::whole(&self.inbox) {
            // Checked once per connection: the peer is always the same proxy.
            self.is_known = self.is_known || message::is_from_host(&self.inbox[..length]);
            let answer = if self.is_known { answer } else { message::NOT_FROM_HOST };
            self.inbox.drain(..length);
            if self.socket.write_all(answer).is_err() {
                return false;
            }
        }
        true
    }
}
