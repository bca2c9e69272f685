//! An orchestrator that receives callbacks: it keeps every message, and accepts or rejects it.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An orchestrator that listens. Its thread ends with the test's process.
#[derive(Debug)]
pub struct Orchestrator {
    address: SocketAddr,
    seen: Arc<Mutex<OrchestratorState>>,
}

/// A message.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// The path that it came to.
    pub path: String,
    /// Its headers, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, as it came.
    pub bytes: Vec<u8>,
    /// Body as JSON.
    pub body: Value,
    /// True if it was accepted.
    pub was_taken: bool,
}

/// Reaction to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Accepts it.
    Taken,
    /// Answers with a failure, whether it has accepted it or not.
    Failed,
    /// Closes the connection without an answer.
    HangsUp,
    /// Accepts it after a while.
    Late(Duration),
    /// Sends half an answer.
    Half,
}

#[derive(Debug, Default)]
struct OrchestratorState {
    received: Vec<ReceivedMessage>,
    refused: usize,
    /// Reactions to the next messages.
    replies: VecDeque<Reply>,
}

// === impl Orchestrator ===

impl Orchestrator {
    /// Begins to listen.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<OrchestratorState>>::default();
        let theirs = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&theirs);
                std::thread::spawn(move || serve(&stream, &seen));
            }
        });
        Self { address, seen }
    }

    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Rejects the next messages, that many.
    pub fn refuse(&self, messages: usize) {
        locked(&self.seen).refused = messages;
    }

    /// Does that with the next messages, and takes those after them.
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        locked(&self.seen).replies.extend(replies);
    }

    /// Returns all messages so far.
    pub fn received(&self) -> Vec<ReceivedMessage> {
        locked(&self.seen).received.clone()
    }

    /// Returns the accepted messages.
    pub fn taken(&self) -> Vec<ReceivedMessage> {
        self.received().into_iter().filter(|message| message.was_taken).collect()
    }

    /// Computes a signature with that key, independently.
    pub fn hmac_sha256(key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
        mac.update(bytes);
        mac.finalize().into_bytes().to_vec()
    }
}

// === impl ReceivedMessage ===

impl ReceivedMessage {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<OrchestratorState>) {
    let mut reader = BufReader::new(stream);
    while let Some((path, headers)) = head(&mut reader) {
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut bytes = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
        if reader.read_exact(&mut bytes).is_err() {
            return;
        }
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut seen = locked(seen);
        let is_refused = seen.refused > 0;
        seen.refused = seen.refused.saturating_sub(usize::from(seen.refused != usize::MAX));
        let reply = if is_refused { Reply::Failed } else { seen.replies.pop_front().unwrap_or(Reply::Taken) };
        let was_taken = matches!(reply, Reply::Taken | Reply::Late(_));
        seen.received.push(ReceivedMessage { path, headers, bytes, body, was_taken });
        drop(seen);
        let answer = match reply {
            Reply::Taken => "HTTP/1.1 204 No Content\r\n\r\n",
            Reply::Late(pause) => {
                std::thread::sleep(pause);
                "HTTP/1.1 204 No Content\r\n\r\n"
            }
            Reply::Failed => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            Reply::HangsUp => return,
            Reply::Half => "HTTP/1.1 20",
        };
        if (&*stream).write_all(answer.as_bytes()).is_err() || reply == Reply::Half {
            return;
        }
    }
}

fn head(reader: &mut impl BufRead) -> Option<(String, Vec<(String, String)>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => return Some((path, headers)),
        }
    }
}

fn locked(seen: &Mutex<OrchestratorState>) -> MutexGuard<'_, OrchestratorState> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
