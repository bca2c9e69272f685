//! A thread that serves the sockets of a run: models, the web, and what another crate answers there.
//!
//! A node has one for each run. What a sandbox sends can make the thread slow, and on some kernels have it sleep
//! (`confine::passed_descriptors`), so no other run, and nothing that has a deadline, waits for it without bound.

use crate::http1::limits::CONNECTIONS;
use crate::inference::run::{Run, Served};
use crate::upstream::names::{NameSource, Names};
use crate::upstream::{Pool, Trust};
use crate::web::fetch::{Fetches, Order as FetchOrder};
use crate::web::gate::Gate;
use crate::web::run::WebRun;
use rustix::fd::OwnedFd;
use rustix::process::Pid;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Handle, LocalOptions};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// A proxy. Dropping it ends every call.
#[derive(Debug)]
pub struct Proxy {
    /// The thread ends when this is gone.
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread has let go of everything.
    ended: Mutex<Receiver<()>>,
    thread_id: Pid,
    reactor: Handle,
}

/// A run whose sockets are served. Dropping it ends its calls.
#[derive(Debug)]
pub struct Serving {
    end: watch::Sender<bool>,
    /// Disconnected when every call has ended.
    ended: Mutex<Receiver<()>>,
}

/// A connection that a sandbox has made.
#[derive(Debug)]
pub enum Accepted {
    /// By the loopback of its network.
    Tcp(TcpStream),
    /// By a path of its files.
    Local(UnixStream),
}

/// Answers connections for another crate, on the proxy's thread.
pub type Answer = Box<dyn Fn(Accepted) -> Answering + Send>;

/// A listening socket of a sandbox's, or who else asks for it.
#[derive(Debug)]
pub enum Listener {
    /// On the loopback of its network.
    Tcp(std::net::TcpListener),
    /// At a path of its files.
    Local(std::os::unix::net::UnixListener),
    /// Tools of the host, for pages of the web.
    Fetches(Fetches),
}

/// What answers the connections of one run.
pub(crate) trait Service {
    /// Answers everything that comes by one of its network's.
    fn tcp(self: Rc<Self>, stream: TcpStream) -> Answering;

    /// Answers everything that comes by one of its files'.
    fn local(self: Rc<Self>, stream: UnixStream) -> Answering;

    /// Fetches a page, where there are any.
    fn fetch(self: Rc<Self>, order: FetchOrder) -> Answering {
        Box::pin(async move { drop(order) })
    }
}

/// One connection being answered, until it is closed. It stays on the proxy's thread.
pub type Answering = Pin<Box<dyn Future<Output = ()>>>;

/// A service of another crate.
struct Foreign(Answer);

/// What all runs share.
struct Outside {
    pool: Rc<Pool>,
    names: Rc<Names>,
    /// For whoever is reached for a sandbox by TLS.
    trust: Rc<Trust>,
}

type Make = Box<dyn FnOnce(&Outside) -> Rc<dyn Service> + Send>;

struct Order {
    make: Make,
    listeners: Vec<Accepting>,
    /// Connections at a time.
    connections: usize,
    end: watch::Receiver<bool>,
    /// Dropped when everything has ended.
    ended: std::sync::mpsc::SyncSender<()>,
}

/// A listening socket that the reactor knows.
enum Accepting {
    Tcp(TcpListener),
    Local(UnixListener),
    Fetches(Fetches),
}

/// Threads of one run that large bodies are parsed on, and that wait for credentials: other runs and the host need processors, too.
const BLOCKING_THREADS: usize = 8;

/// Pause after a failed accept, which most likely lacks descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// How long dropping a proxy waits for its thread. [`Proxy::end_within`] tells whether it has ended.
const DROPPED_WITHIN: Duration = Duration::from_secs(2);

// === impl Proxy ===

impl Proxy {
    /// Starts one. It has a thread of its own, and needs descriptors: as many as this process may have are allowed to it.
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
        allow_descriptors();
        let (orders, taken) = mpsc::unbounded_channel();
        let (tell, told) = sync_channel(1);
        let (going, ended) = sync_channel(0);
        let named = std::thread::Builder::new().name("belljar-models".to_owned());
        let thread = named.spawn(move || {
            // It stays on its thread, and so whoever wakes a task of it there wakes nobody else.
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_io().enable_time().max_blocking_threads(BLOCKING_THREADS);
            let built = builder.build_local(LocalOptions::default());
            let handle = built.as_ref().map(|runtime| runtime.handle().clone()).map_err(io::Error::kind);
            // The other end waits below.
            let _ = tell.send(handle.map(|handle| (handle, rustix::thread::gettid())));
            if let Ok(runtime) = built {
                runtime.block_on(take_orders(taken, names));
            }
            // After the runtime, with which the last connections are closed.
            drop(going);
        })?;
        let (reactor, thread_id) = told.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(Self { orders: Some(orders), thread: Some(thread), ended: Mutex::new(ended), thread_id, reactor })
    }

    /// The thread that serves.
    pub fn thread_id(&self) -> Pid {
        self.thread_id
    }

    /// Ends every call and the thread. False if the thread has not ended within that time; it ends later, by itself.
    pub fn end_within(&mut self, limit: Duration) -> bool {
        self.orders.take();
        if !is_over(&self.ended, limit) {
            return false;
        }
        // It has let go of everything, and so there is nothing left to wait for.
        let _ = self.thread.take().map(JoinHandle::join);
        true
    }

    /// Serves models to a run by these sockets, until what is returned is dropped.
    ///
    /// # Errors
    /// The system's, when one of them can't be listened to.
    pub fn serve(&self, run: Arc<Run>, listeners: Vec<Listener>) -> io::Result<Serving> {
        let make: Make = Box::new(|outside| Rc::new(Served::new(run, Rc::clone(&outside.pool))));
        self.order(make, (listeners, CONNECTIONS))
    }

    /// Has `answer` answer the connections that come by these sockets, until what is returned is dropped. At most
    /// `connections` at a time; others wait until one is closed.
    ///
    /// # Errors
    /// As [`Proxy::serve`].
    pub fn serve_with(
        &self,
        answer: Answer,
        (listeners, connections): (Vec<Listener>, usize),
    ) -> io::Result<Serving> {
        let make: Make = Box::new(|_| Rc::new(Foreign(answer)));
        self.order(make, (listeners, connections))
    }

    /// Serves the web to a run by these sockets, until what is returned is dropped.
    ///
    /// # Errors
    /// As [`Proxy::serve`].
    pub fn serve_web(&self, run: Arc<WebRun>, listeners: Vec<Listener>) -> io::Result<Serving> {
        let make: Make =
            Box::new(|outside| Rc::new(Gate::new(run, Rc::clone(&outside.names), Rc::clone(&outside.trust))));
        self.order(make, (listeners, CONNECTIONS))
    }

    fn order(&self, make: Make, (listeners, connections): (Vec<Listener>, usize)) -> io::Result<Serving> {
        let _inside = self.reactor.enter();
        let listeners = listeners.into_iter().map(Listener::accepting).collect::<io::Result<_>>()?;
        let (end, ending) = watch::channel(false);
        let (ended, has_ended) = sync_channel(0);
        let order = Order { make, listeners, connections, end: ending, ended };
        // The thread takes orders for as long as this lives.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        Ok(Serving { end, ended: Mutex::new(has_ended) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end_within(DROPPED_WITHIN);
    }
}

// === impl Serving ===

impl Serving {
    /// Ends every call that is under way. True when all of them have been handed to the ledger; false if that has not happened
    /// within that time, and may be asked again.
    pub fn end_within(&self, limit: Duration) -> bool {
        let _ = self.end.send(true);
        is_over(&self.ended, limit)
    }

    /// Ends every call that is under way, and returns when all of them have been handed to the ledger, however long that takes.
    pub fn end(self) {
        while !self.end_within(Duration::MAX) {}
    }
}

/// Waits until the other end is gone, at most that long. Nothing is ever sent.
fn is_over(ended: &Mutex<Receiver<()>>, limit: Duration) -> bool {
    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
}

// === impl Foreign ===

impl Service for Foreign {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> Answering {
        (self.0)(Accepted::Tcp(stream))
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> Answering {
        (self.0)(Accepted::Local(stream))
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
            Self::Fetches(fetches) => Ok(Accepting::Fetches(fetches)),
        }
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<Order>, names: NameSource) {
    let pool = Rc::new(Pool::new(names.clone()));
    let outside = Outside { pool, names: Rc::new(Names::new(names)), trust: Rc::default() };
    while let Some(Order { make, listeners, connections, end, ended }) = orders.recv().await {
        let service = make(&outside);
        tokio::task::spawn_local(async move {
            serve(&service, (listeners, connections), &end).await;
            drop(ended);
        });
    }
}

/// Serves one run until it ends.
async fn serve(
    service: &Rc<dyn Service>,
    (listeners, connections): (Vec<Accepting>, usize),
    end: &watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(connections));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn_local(accept(listener, Rc::clone(service), Arc::clone(&places), end.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

/// Takes connections until the run ends, and ends them then. Each call that was under way has written its record when this
/// returns.
async fn accept(
    mut listener: Accepting,
    service: Rc<dyn Service>,
    places: Arc<Semaphore>,
    mut end: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // Also when nobody is left who could say so.
            _ = end.wait_for(|end| *end) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept_one(&mut listener, &service, &places) => match accepted {
                Some(connection) => drop(connections.spawn_local(connection)),
                None => tokio::time::sleep(AFTER_FAILURE).await,
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// The next connection, to be served; nothing if there can't be one.
async fn accept_one(
    listener: &mut Accepting,
    service: &Rc<dyn Service>,
    places: &Arc<Semaphore>,
) -> Option<Answering> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    let service = Rc::clone(service);
    let answering = match listener {
        Accepting::Tcp(listener) => {
            let (stream, _) = listener.accept().await.ok()?;
            let _ = stream.set_nodelay(true);
            service.tcp(stream)
        }
        Accepting::Local(listener) => service.local(listener.accept().await.ok()?.0),
        Accepting::Fetches(fetches) => service.fetch(fetches.next().await),
    };
    Some(Box::pin(async move {
        answering.await;
        drop(place);
    }))
}

/// Allows this process the descriptors that it could allow itself anyway: a call takes two. Returns how many it has then.
pub fn allow_descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
