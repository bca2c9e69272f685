//! A scripted model server: OpenAI's, Anthropic's and Ollama's dialects, whole or streamed, delivered correctly or with
//! faults. It keeps every request byte for byte, and accepts only strictly valid HTTP.
//!
//! It uses only threads and the standard library, because the code under test uses the libraries that it could have
//! been made with. There is no TLS.

mod answer;
mod anthropic;
mod connection;
mod conversation;
mod delivery;
mod input;
mod listing;
mod ollama;
mod openai;
mod operation;
mod rendered;
mod request;
mod responses;
mod script;
pub mod spend_logs;

pub use answer::{Answer, ToolCall, Usage};
pub use operation::{Dialect, Operation};
pub use request::{Flaw, Request};
pub use script::Script;

use delivery::Stream;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A server, on a port of the loopback interface. It ends when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<ModelServerState>,
    /// Listening sockets, with their threads.
    listeners: Mutex<Vec<(OwnedFd, JoinHandle<()>)>>,
}

/// Behaviour that is independent of requests.
#[derive(Debug, Clone)]
pub struct ServerBehaviour {
    /// Number of first connections that are closed as soon as they are accepted.
    pub closes_first: usize,
    /// Maximum number of bytes read in a second; the receive buffer is small.
    pub reads_per_second: Option<usize>,
    /// Models that it lists.
    pub models: Vec<String>,
    /// Keep requests. With millions of them, they are only counted.
    pub keeps_requests: bool,
}

/// A request, and the outcome of its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The number of the request, in the order in which they came.
    pub number: usize,
    /// The request.
    pub request: Request,
    /// Outcome of its answer.
    pub outcome: AnswerOutcome,
}

/// Outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The answer is in progress.
    Open,
    /// All of it was written.
    Delivered {
        /// Time of the last write.
        at: Instant,
    },
    /// The client has closed the connection, or half of it.
    PeerGone {
        /// Time at which that was noticed: in a pause within milliseconds, else by the next write.
        at: Instant,
    },
    /// The server has closed the connection.
    Cut {
        /// Time of the end.
        at: Instant,
    },
}

/// State that its threads share.
#[derive(Debug)]
struct ModelServerState {
    conduct: ServerBehaviour,
    script: Mutex<Script>,
    exchanges: Mutex<Vec<Exchange>>,
    requests: AtomicUsize,
    connections: AtomicUsize,
    open: Mutex<HashMap<usize, OwnedFd>>,
    ends: AtomicBool,
}

// === impl ModelServer ===

impl ModelServer {
    /// Starts one that behaves well.
    pub fn start(script: Script) -> Self {
        Self::start_with(ServerBehaviour::default(), script)
    }

    /// Starts one.
    pub fn start_with(conduct: ServerBehaviour, script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback interface");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(ModelServerState {
            conduct,
            script: Mutex::new(script),
            exchanges: Mutex::default(),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            open: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let server = Self { address, state, listeners: Mutex::default() };
        let accepts = listener.try_clone().expect("another handle of it");
        server.listen(&listener, move || {
            let (stream, _) = accepts.accept()?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        server
    }

    /// Listens on a Unix socket as well.
    pub fn listen_at(&self, path: &Path) {
        let listener = UnixListener::bind(path).expect("a socket at this path");
        let accepts = listener.try_clone().expect("another handle of it");
        self.listen(&listener, move || Ok(accepts.accept()?.0));
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, with the outcomes of their answers.
    pub fn exchanges(&self) -> Vec<Exchange> {
        locked(&self.state.exchanges).clone()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.exchanges).iter().map(|exchange| exchange.request.clone()).collect()
    }

    /// Returns the requests that no client may send.
    pub fn flawed(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.flaw.is_some()).collect()
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of accepted connections so far.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of open connections.
    pub fn open_connection_count(&self) -> usize {
        locked(&self.state.open).len()
    }

    fn listen<S: Stream + 'static>(
        &self,
        listener: &impl AsFd,
        mut accept: impl FnMut() -> io::Result<S> + Send + 'static,
    ) {
        if self.state.conduct.reads_per_second.is_some() {
            // Accepted connections inherit it.
            rustix::net::sockopt::set_socket_recv_buffer_size(listener, 16 << 10).expect("a small buffer");
        }
        let handle = listener.as_fd().try_clone_to_owned().expect("another handle of the listener");
        let state = Arc::clone(&self.state);
        let thread = std::thread::spawn(move || {
            while !state.ends.load(Ordering::SeqCst) {
                // Out of descriptors: some may be free again in a moment.
                let Ok(stream) = accept() else {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                };
                begin(&state, stream);
            }
        });
        locked(&self.listeners).push((handle, thread));
    }
}

/// Serves a connection in a thread of its own.
fn begin<S: Stream + 'static>(state: &Arc<ModelServerState>, stream: S) {
    let connection = state.connections.fetch_add(1, Ordering::SeqCst);
    if let Ok(handle) = stream.as_fd().try_clone_to_owned() {
        locked(&state.open).insert(connection, handle);
    }
    let state = Arc::clone(state);
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let serving = Arc::clone(&state);
    let begun = thread.spawn(move || {
        connection::serve(&serving, stream, connection);
        locked(&serving.open).remove(&connection);
    });
    if begun.is_err() {
        // The last handle of it: it is closed.
        locked(&state.open).remove(&connection);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        use rustix::net::{Shutdown, shutdown};
        self.state.ends.store(true, Ordering::SeqCst);
        for (listener, thread) in locked(&self.listeners).drain(..) {
            // Ends the wait for the next connection.
            let _ = shutdown(&listener, Shutdown::Both);
            let _ = thread.join();
        }
        for connection in locked(&self.state.open).values() {
            let _ = shutdown(connection, Shutdown::Both);
        }
    }
}

// === impl ServerBehaviour ===

impl Default for ServerBehaviour {
    fn default() -> Self {
        Self {
            closes_first: 0,
            reads_per_second: None,
            models: vec!["scripted".to_owned()],
            keeps_requests: true,
        }
    }
}
