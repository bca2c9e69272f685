//! A model server that says what a test tells it to: OpenAI's, Anthropic's and Ollama's dialects, whole or streamed,
//! well or badly delivered. It keeps every request byte for byte, and takes nothing that isn't strictly HTTP.
//!
//! Made of threads and the standard library alone: what is tested against it is made with the libraries that it might
//! have been made with. There is no TLS.

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
    state: Arc<State>,
    /// Where it listens, with the threads that do.
    listeners: Mutex<Vec<(OwnedFd, JoinHandle<()>)>>,
}

/// How it behaves whatever it is asked.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// The first so many connections are closed as soon as they are accepted.
    pub closes_first: usize,
    /// It reads no more than this in a second, and has little room for what it hasn't read.
    pub reads_per_second: Option<usize>,
    /// The models that it lists.
    pub models: Vec<String>,
    /// Whether it keeps requests. Where millions come, they are only counted.
    pub keeps_requests: bool,
}

/// A request, and what became of its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The number of the request, in the order in which they came.
    pub number: usize,
    /// The request.
    pub request: Request,
    /// What became of its answer.
    pub outcome: Outcome,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is on its way.
    Open,
    /// All of it was written.
    Delivered {
        /// When.
        at: Instant,
    },
    /// The connection was ended from the other side, or half of it.
    PeerGone {
        /// When that was noticed: in a pause within milliseconds, else by the next write.
        at: Instant,
    },
    /// The connection was ended from this side.
    Cut {
        /// When.
        at: Instant,
    },
}

/// What its threads have in common.
#[derive(Debug)]
struct State {
    conduct: Conduct,
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
        Self::start_with(Conduct::default(), script)
    }

    /// Starts one.
    pub fn start_with(conduct: Conduct, script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of the loopback interface");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State {
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request that came so far, with what became of its answer.
    pub fn exchanges(&self) -> Vec<Exchange> {
        locked(&self.state.exchanges).clone()
    }

    /// Every request that came so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.exchanges).iter().map(|exchange| exchange.request.clone()).collect()
    }

    /// Those that no client may send.
    pub fn flawed(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.flaw.is_some()).collect()
    }

    /// How many requests came so far.
    pub fn request_count(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// How many connections were accepted so far.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// How many of them are open.
    pub fn open_connection_count(&self) -> usize {
        locked(&self.state.open).len()
    }

    fn listen<S: Stream + 'static>(
        &self,
        listener: &impl AsFd,
        mut accept: impl FnMut() -> io::Result<S> + Send + 'static,
    ) {
        if self.state.conduct.reads_per_second.is_some() {
            // What is accepted inherits it.
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
fn begin<S: Stream + 'static>(state: &Arc<State>, stream: S) {
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

// === impl Conduct ===

impl Default for Conduct {
    fn default() -> Self {
        Self {
            closes_first: 0,
            reads_per_second: None,
            models: vec!["scripted".to_owned()],
            keeps_requests: true,
        }
    }
}
