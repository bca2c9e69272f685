//! A client that opens one tunnel after another, or is denied one after another.

use super::far_end::ECHO;
use crate::models::part::end_with_parent;
use crate::models::socket::ListenerAddress;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

/// The part.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeniedRequests {
    pub(super) target: ListenerAddress,
    /// The tunnels' destination.
    pub(super) authority: String,
    pub(super) status: String,
    pub(super) times: usize,
}

/// Times from the complete request head to the complete response head, sorted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DenialTimes {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

// === impl DeniedRequests ===

impl DeniedRequests {
    pub(crate) fn play(&self) -> DenialTimes {
        end_with_parent();
        let mut times: Vec<u128> = (0..self.times).map(|_| self.once()).collect();
        times.sort_unstable();
        let at = |per_cent: usize| times[(times.len() - 1) * per_cent / 100] as f64 / 1e3;
        DenialTimes { p50_us: at(50), p99_us: at(99) }
    }

    fn once(&self) -> u128 {
        let mut socket = self.target.connect().expect("a connection");
        let begun = Instant::now();
        let answer = ask(&mut socket, &self.authority);
        let took = begun.elapsed().as_nanos();
        assert!(answer.contains(&format!(" {} ", self.status)), "{answer}");
        if self.status == "200" {
            let mut back = [0];
            socket.write_all(&[ECHO]).expect("a tunnel");
            socket.read_exact(&mut back).expect("the echoed bytes");
        }
        took
    }
}

/// Requests a tunnel, and returns the head of the response.
pub(super) fn ask(socket: &mut File, authority: &str) -> String {
    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("a connection");
    let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
    while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = socket.read(&mut bytes).expect("an answer");
        assert!(count > 0, "closed before an answer");
        answer.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}
