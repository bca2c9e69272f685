//! Thread that serves the sockets of a run: model calls, the web hatch, and services of other crates.
//!
//! A node has one such thread for each run. A sandbox's requests can slow the thread down, and on some kernels put it to sleep
//! (`confine::passed_descriptors`). So no other run, and nothing with a deadline, waits for it without bound.

use crate::http1::limits::CONNECTIONS;
use crate::inference::run::{InferenceProxy, Run};
use crate::upstream::names::{NameResolver, NameSource};
use crate::upstream::{Pool, TrustStore};
use crate::web::fetch::{Fetches, PendingFetch as FetchOrder};
use crate::web::hatch_server::WebProxy;
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

/// Proxy of a run. Dropping it ends every call.
#[derive(Debug)]
pub struct Proxy {
    /// The thread ends once this is dropped.
    orders: Option<mpsc::UnboundedSender<ServeOrder>>,
    thread: Option<JoinHandle<()>>,
    /// Disconnected once the thread has released everything.
    ended: Mutex<Receiver<()>>,
    thread_id: Pid,
    reactor: Handle,
}

/// Run whose sockets are served. Dropping it ends its calls.
#[derive(Debug)]
pub struct ServedRun {
    end: watch::Sender<bool>,
    /// Disconnected once every call has ended.
    ended: Mutex<Receiver<()>>,
}

/// Accepted connection from a sandbox.
#[derive(Debug)]
pub enum AcceptedConnection {
    /// Through the loopback interface of its network.
    Tcp(TcpStream),
    /// Through a socket in its file system.
    Local(UnixStream),
}

/// Function of another crate that answers connections on the proxy's thread.
pub type ConnectionHandler = Box<dyn Fn(AcceptedConnection) -> ConnectionFuture + Send>;

/// Source of connections or requests of a run.
#[derive(Debug)]
pub enum Listener {
    /// Listening socket on the loopback interface of the sandbox's network.
    Tcp(std::net::TcpListener),
    /// Listening socket in the sandbox's file system.
    Local(std::os::unix::net::UnixListener),
    /// Fetch requests of the host's tools.
    Fetches(Fetches),
}

/// Service that answers the connections of one run.
pub(crate) trait Service {
    /// Answers all requests of a TCP connection.
    fn tcp(self: Rc<Self>, stream: TcpStream) -> ConnectionFuture;

    /// Answers all requests of a local connection.
    fn local(self: Rc<Self>, stream: UnixStream) -> ConnectionFuture;

    /// Fetches a page, if the service supports that.
    fn fetch(self: Rc<Self>, order: FetchOrder) -> ConnectionFuture {
        Box::pin(async move { drop(order) })
    }
}

/// Future that serves one connection until it is closed. It stays on the proxy's thread.
pub type ConnectionFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Service of another crate.
struct HandlerService(ConnectionHandler);

/// State that all runs share.
struct ProxyContext {
    pool: Rc<Pool>,
    names: Rc<NameResolver>,
    /// Trusted authorities for TLS connections that are made for a sandbox.
    trust: Rc<TrustStore>,
}

type ServiceFactory = Box<dyn FnOnce(&ProxyContext) -> Rc<dyn Service> + Send>;

struct ServeOrder {
    make: ServiceFactory,
    listeners: Vec<RegisteredListener>,
    /// Maximum number of concurrent connections.
    connections: usize,
    end: watch::Receiver<bool>,
    /// Dropped once everything has ended.
    ended: std::sync::mpsc::SyncSender<()>,
}

/// Listening socket that is registered with the reactor.
enum RegisteredListener {
    Tcp(TcpListener),
    Local(UnixListener),
    Fetches(Fetches),
}

/// Threads of one run that parse large bodies and wait for credentials. They are few: other runs and the host need processors,
/// too.
const BLOCKING_THREADS: usize = 8;

/// Pause after a failed accept, which most likely lacks descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Maximum time that dropping a proxy waits for its thread. [`Proxy::end_within`] returns whether it has ended.
const DROPPED_WITHIN: Duration = Duration::from_secs(2);

// === impl Proxy ===

impl Proxy {
    /// Starts a proxy on its own thread. Raises the limit of open descriptors to the maximum that this process may set.
    ///
    /// # Errors
    /// The system's, if no thread or descriptor is available.
    pub fn start() -> io::Result<Self> {
        Self::start_with(NameSource::of_system())
    }

    /// Starts a proxy that resolves names by `names`.
    ///
    /// # Errors
    /// Those of [`Proxy::start`].
    pub fn start_with(names: NameSource) -> io::Result<Self> {
        allow_descriptors();
        let (orders, taken) = mpsc::unbounded_channel();
        let (tell, told) = sync_channel(1);
        let (going, ended) = sync_channel(0);
        let named = std::thread::Builder::new().name("belljar-models".to_owned());
        let thread = named.spawn(move || {
            // The runtime stays on its thread, so waking a task from there needs no other thread.
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_io().enable_time().max_blocking_threads(BLOCKING_THREADS);
            let built = builder.build_local(LocalOptions::default());
            let handle = built.as_ref().map(|runtime| runtime.handle().clone()).map_err(io::Error::kind);
            // The receiver waits below.
            let _ = tell.send(handle.map(|handle| (handle, rustix::thread::gettid())));
            if let Ok(runtime) = built {
                runtime.block_on(take_orders(taken, names));
            }
            // After the runtime, which closes the last connections when dropped.
            drop(going);
        })?;
        let (reactor, thread_id) = told.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(Self { orders: Some(orders), thread: Some(thread), ended: Mutex::new(ended), thread_id, reactor })
    }

    /// Returns the id of the thread that serves.
    pub fn thread_id(&self) -> Pid {
        self.thread_id
    }

    /// Ends every call and the thread. Returns false if the thread has not ended within that time; it ends later by itself.
    pub fn end_within(&mut self, limit: Duration) -> bool {
        self.orders.take();
        if !is_over(&self.ended, limit) {
            return false;
        }
        // The thread has released everything, so joining doesn't block.
        let _ = self.thread.take().map(JoinHandle::join);
        true
    }

    /// Serves model calls of a run on these sockets, until the result is dropped.
    ///
    /// # Errors
    /// The system's, if a socket can't be listened to.
    pub fn serve(&self, run: Arc<Run>, listeners: Vec<Listener>) -> io::Result<ServedRun> {
        let make: ServiceFactory =
            Box::new(|outside| Rc::new(InferenceProxy::new(run, Rc::clone(&outside.pool))));
        self.order(make, (listeners, CONNECTIONS))
    }

    /// Answers the connections of these sockets with `answer`, until the result is dropped. At most `connections` run
    /// concurrently; others wait.
    ///
    /// # Errors
    /// Those of [`Proxy::serve`].
    pub fn serve_with(
        &self,
        answer: ConnectionHandler,
        (listeners, connections): (Vec<Listener>, usize),
    ) -> io::Result<ServedRun> {
        let make: ServiceFactory = Box::new(|_| Rc::new(HandlerService(answer)));
        self.order(make, (listeners, connections))
    }

    /// Serves the web hatch of a run on these sockets, until the result is dropped.
    ///
    /// # Errors
    /// Those of [`Proxy::serve`].
    pub fn serve_web(&self, run: Arc<WebRun>, listeners: Vec<Listener>) -> io::Result<ServedRun> {
        let make: ServiceFactory = Box::new(|outside| {
            Rc::new(WebProxy::new(run, Rc::clone(&outside.names), Rc::clone(&outside.trust)))
        });
        self.order(make, (listeners, CONNECTIONS))
    }

    fn order(
        &self,
        make: ServiceFactory,
        (listeners, connections): (Vec<Listener>, usize),
    ) -> io::Result<ServedRun> {
        let _inside = self.reactor.enter();
        let listeners = listeners.into_iter().map(Listener::accepting).collect::<io::Result<_>>()?;
        let (end, ending) = watch::channel(false);
        let (ended, has_ended) = sync_channel(0);
        let order = ServeOrder { make, listeners, connections, end: ending, ended };
        // The thread takes orders for as long as `self` lives.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        Ok(ServedRun { end, ended: Mutex::new(has_ended) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end_within(DROPPED_WITHIN);
    }
}

// === impl ServedRun ===

impl ServedRun {
    /// Ends every call under way. Returns true once the records of all calls were handed to the ledger; false if that didn't
    /// happen within the time. It may be called again.
    pub fn end_within(&self, limit: Duration) -> bool {
        let _ = self.end.send(true);
        is_over(&self.ended, limit)
    }

    /// Ends every call under way. Returns once the records of all calls were handed to the ledger, however long that takes.
    pub fn end(self) {
        while !self.end_within(Duration::MAX) {}
    }
}

/// Waits until the other end is dropped, at most that long. Nothing is ever sent.
fn is_over(ended: &Mutex<Receiver<()>>, limit: Duration) -> bool {
    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
}

// === impl HandlerService ===

impl Service for HandlerService {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> ConnectionFuture {
        (self.0)(AcceptedConnection::Tcp(stream))
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> ConnectionFuture {
        (self.0)(AcceptedConnection::Local(stream))
    }
}

// === impl Listener ===

impl Listener {
    /// Makes a listener from the descriptor of a socket of either kind.
    ///
    /// # Errors
    /// The system's, if it is no socket or one of another kind.
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

    fn accepting(self) -> io::Result<RegisteredListener> {
        match self {
            Self::Tcp(listener) => TcpListener::from_std(listener).map(RegisteredListener::Tcp),
            Self::Local(listener) => UnixListener::from_std(listener).map(RegisteredListener::Local),
            Self::Fetches(fetches) => Ok(RegisteredListener::Fetches(fetches)),
        }
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<ServeOrder>, names: NameSource) {
    let pool = Rc::new(Pool::new(names.clone()));
    let outside = ProxyContext { pool, names: Rc::new(NameResolver::new(names)), trust: Rc::default() };
    while let Some(ServeOrder { make, listeners, connections, end, ended }) = orders.recv().await {
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
    (listeners, connections): (Vec<RegisteredListener>, usize),
    end: &watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(connections));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn_local(accept(listener, Rc::clone(service), Arc::clone(&places), end.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

/// Accepts connections until the run ends, and then ends them. When this returns, each call under way has written its record.
async fn accept(
    mut listener: RegisteredListener,
    service: Rc<dyn Service>,
    places: Arc<Semaphore>,
    mut end: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // This also ends if the sender is gone.
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

/// Accepts the next connection and returns its future; `None` if accepting fails.
async fn accept_one(
    listener: &mut RegisteredListener,
    service: &Rc<dyn Service>,
    places: &Arc<Semaphore>,
) -> Option<ConnectionFuture> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    let service = Rc::clone(service);
    let answering = match listener {
        RegisteredListener::Tcp(listener) => {
            let (stream, _) = listener.accept().await.ok()?;
            let _ = stream.set_nodelay(true);
            service.tcp(stream)
        }
        RegisteredListener::Local(listener) => service.local(listener.accept().await.ok()?.0),
        RegisteredListener::Fetches(fetches) => service.fetch(fetches.next().await),
    };
    Some(Box::pin(async move {
        answering.await;
        drop(place);
    }))
}

/// Raises this process's limit of descriptors to its hard limit: a call takes two. Returns the new limit.
pub fn allow_descriptors() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
