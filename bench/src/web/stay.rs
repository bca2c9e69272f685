//! Many concurrent tunnels, each of which has transferred data.

use super::far_end::ECHO;
use super::knock::ask;
use crate::models::part::{say, wait_for_end};
use crate::models::socket::ListenerAddress;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The part: it prints the number of tunnels when all are open, and keeps them until it is told to end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdleTunnels {
    pub(super) target: ListenerAddress,
    pub(super) authority: String,
    pub(super) tunnels: usize,
}

// === impl IdleTunnels ===

impl IdleTunnels {
    pub(crate) fn play(&self) {
        let mut sockets: Vec<_> = (0..self.tunnels)
            .map(|_| {
                let mut socket = self.target.connect().expect("a connection");
                let answer = ask(&mut socket, &self.authority);
                assert!(answer.contains(" 200 "), "{answer}");
                socket
            })
            .collect();
        // All once more, so that each is known to be open still.
        let mut back = [0];
        for socket in &mut sockets {
            socket.write_all(&[ECHO]).and_then(|()| socket.read_exact(&mut back)).expect("a tunnel");
        }
        say(&sockets.len());
        wait_for_end();
    }
}
