//! The thread that serves the sockets of runs.

use super::exchange;
use super::room::Room;
use super::run::Run;
use crate::http1::limits::CONNECTIONS;
use crate::upstream::Pool;
use crate::upstream::names::NameSource;
use rustix::fd::OwnedFd;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::LocalSet;

/// A proxy. Dropping it ends every call.
#[derive(Debug)]
pub struct Proxy {
    // Before the thread: without it, that one ends.
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A run whose sockets are served. Dropping it ends its calls.
#[derive(Debug)]
pub struct Serving {
    end: watch::Sender<bool>,
    ended: Option<oneshot::Receiver<()>>,
}

/// A listening socket of a sandbox's.
#[derive(Debug)]
pub enum Listener {
    /// On the loopback of its network.
    Tcp(std::net::TcpListener),
    /// At a path of its files.
    Local(std::os::unix::net::UnixListener),
}

struct Order {
    run: Arc<Run>,
    listeners: Vec<Listener>,
    end: watch::Receiver<bool>,
    ended: oneshot::Sender<()>,
}

/// A listening socket that the reactor knows.
enum Accepting {
    Tcp(TcpListener),
    Local(UnixListener),
}

/// Without descriptors nobody can be let in, and trying at once again would help nobody.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

// === impl Proxy ===

impl Proxy {
    /// Starts one. It has a thread of its own.
    ///
    /// # Errors
    /// The system's, when there can be no more threads or descriptors.
    pub fn start() -> io::Result<Self> {
        Self::start_with(NameSource::of_system())
    }

    /// Starts one that resolves names there.
    ///
    /// # Errors
    /// As [`Proxy::start`].
    pub fn start_with(names: NameSource) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (orders, taken) = mpsc::unbounded_channel();
        let named = std::thread::Builder::new().name("belljar-models".to_owned());
        let thread = named.spawn(move || LocalSet::new().block_on(&runtime, take_orders(taken, names)))?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Serves a run by these sockets, until what is returned is dropped.
    pub fn serve(&self, run: Arc<Run>, listeners: Vec<Listener>) -> Serving {
        let (end, ending) = watch::channel(false);
        let (ended, has_ended) = oneshot::channel();
        let order = Order { run, listeners, end: ending, ended };
        // The thread takes orders for as long as this lives.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        Serving { end, ended: Some(has_ended) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

// === impl Serving ===

impl Serving {
    /// Ends every call that is under way, and returns when all of them have been handed to the ledger.
    pub fn end(mut self) {
        let _ = self.end.send(true);
        if let Some(ended) = self.ended.take() {
            let _ = ended.blocking_recv();
        }
    }
}

// === impl Listener ===

impl Listener {
    /// A listening socket from its descriptor, of whichever kind it is.
    ///
    /// # Errors
    /// The system's, when it is no socket, or of another kind.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        match rustix::net::sockopt::socket_domain(&descriptor)? {
            rustix::net::AddressFamily::UNIX => Ok(Self::Local(descriptor.into())),
            rustix::net::AddressFamily::INET | rustix::net::AddressFamily::INET6 => {
                Ok(Self::Tcp(descriptor.into()))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn accepting(self) -> io::Result<Accepting> {
        match self {
            Self::Tcp(listener) => TcpListener::from_std(listener).map(Accepting::Tcp),
            Self::Local(listener) => UnixListener::from_std(listener).map(Accepting::Local),
        }
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<Order>, names: NameSource) {
    let pool = Rc::new(Pool::new(names));
    while let Some(order) = orders.recv().await {
        tokio::task::spawn_local(serve(order, Rc::clone(&pool)));
    }
}

/// Serves one run until it ends, and then says so.
async fn serve(order: Order, pool: Rc<Pool>) {
    let Order { run, listeners, mut end, ended } = order;
    let (places, room) = (Arc::new(Semaphore::new(CONNECTIONS)), Rc::new(Room::new()));
    let connections = LocalSet::new();
    for listener in listeners.into_iter().filter_map(|listener| listener.accepting().ok()) {
        let with = (Arc::clone(&run), Rc::clone(&pool), Rc::clone(&room));
        connections.spawn_local(accept(listener, with, Arc::clone(&places)));
    }
    let over = async {
        // Also when nobody is left who could say so.
        let _ = end.wait_for(|end| *end).await;
    };
    connections.run_until(over).await;
    // With the set go all calls that were under way; each has written its record when it is dropped.
    drop(connections);
    let _ = ended.send(());
}

async fn accept(
    listener: Accepting,
    (run, pool, room): (Arc<Run>, Rc<Pool>, Rc<Room>),
    places: Arc<Semaphore>,
) {
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (run, pool, room) = (Arc::clone(&run), Rc::clone(&pool), Rc::clone(&room));
        match &listener {
            Accepting::Tcp(listener) => {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(AFTER_FAILURE).await;
                    continue;
                };
                let _ = stream.set_nodelay(true);
                tokio::task::spawn_local(async move {
                    exchange::serve(stream, &run, &pool, &room).await;
                    drop(place);
                });
            }
            Accepting::Local(listener) => {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(AFTER_FAILURE).await;
                    continue;
                };
                tokio::task::spawn_local(async move {
                    exchange::serve(stream, &run, &pool, &room).await;
                    drop(place);
                });
            }
        }
    }
}
