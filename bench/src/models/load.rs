//! Clients that make the next call as soon as they have a response, each on a persistent connection.

use super::message;
use super::socket::{ListenerAddress, SocketPoll};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// The part: one thread for all clients.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadPart {
    pub(super) target: ListenerAddress,
    pub(super) connections: usize,
    pub(super) lasts: Duration,
    /// True if it calls the provider directly.
    pub(super) is_direct: bool,
}

/// The result of a load.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LoadResult {
    pub(super) a_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Number of answered calls, including those of the warm-up.
    pub(super) answered: usize,
}

struct Client {
    socket: File,
    inbox: Vec<u8>,
    asked_at: Instant,
}

/// Untimed warm-up.
const WARM_UP: Duration = Duration::from_millis(200);

const ROOM: usize = 16 << 10;

// === impl LoadPart ===

impl LoadPart {
    pub(super) fn play(&self) -> LoadResult {
        let call = message::call(false, self.is_direct);
        let mut watch = SocketPoll::new();
        let client = |number| Client::begin(&self.target, &call, &watch, number);
        let mut clients: Vec<Client> = (0..self.connections).map(client).collect();
        let before = drive(&mut clients, &mut watch, &call, WARM_UP).len();
        let begun = Instant::now();
        let mut times = drive(&mut clients, &mut watch, &call, self.lasts);
        let took = begun.elapsed();
        assert!(!times.is_empty(), "no call was answered at {:?}", self.target);
        times.sort_unstable();
        LoadResult {
            a_second: times.len() as f64 / took.as_secs_f64(),
            p50_us: at(&times, 50),
            p99_us: at(&times, 99),
            answered: before + times.len(),
        }
    }
}

/// Returns a percentile of sorted times in nanoseconds, in microseconds.
pub(super) fn at(sorted: &[u64], per_cent: usize) -> f64 {
    sorted[(sorted.len() - 1) * per_cent / 100] as f64 / 1e3
}

/// Lets every client call for this long. Returns the duration of each call in nanoseconds.
fn drive(clients: &mut [Client], watch: &mut SocketPoll, call: &[u8], lasts: Duration) -> Vec<u64> {
    let (begun, mut times) = (Instant::now(), Vec::with_capacity(1 << 20));
    while begun.elapsed() < lasts {
        for number in watch.wait(Some(lasts)) {
            let client = &mut clients[number];
            if client.is_answered() {
                times.push(u64::try_from(client.asked_at.elapsed().as_nanos()).unwrap_or(u64::MAX));
                client.ask(call);
            }
        }
    }
    times
}

// === impl Client ===

impl Client {
    fn begin(target: &ListenerAddress, call: &[u8], watch: &SocketPoll, number: usize) -> Self {
        let socket = target.connect().expect("a connection");
        watch.add(&socket, number);
        let mut client = Self { socket, inbox: Vec::with_capacity(ROOM), asked_at: Instant::now() };
        client.ask(call);
        client
    }

    fn ask(&mut self, call: &[u8]) {
        self.asked_at = Instant::now();
        self.socket.write_all(call).expect("a connection that is kept");
    }

    /// Reads once, and returns true if the response is complete.
    fn is_answered(&mut self) -> bool {
        let mut bytes = [0; ROOM];
        let count = self.socket.read(&mut bytes).expect("an answer");
        assert!(count > 0, "closed before an answer: {}", String::from_utf8_lossy(&self.inbox));
        self.inbox.extend_from_slice(&bytes[..count]);
        let Some(length) = message::whole(&self.inbox) else { return false };
        message::must_be_good(&self.inbox);
        assert_eq!(self.inbox.len(), length, "more than was asked for");
        self.inbox.clear();
        true
    }
}
