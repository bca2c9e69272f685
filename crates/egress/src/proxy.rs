//! The thread that serves the sockets of runs, whatever they are for.

use crate::http1::limits::CONNECTIONS;
use crate::inference::run::{Run, Served};
use crate::upstream::names::{NameSource, Names};
use crate::upstream::{Pool, Trust};
use crate::web::fetch::{Fetches, Order as FetchOrder};
use crate::web::gate::Gate;
use crate::web::run::WebRun;
use rustix::fd::OwnedFd;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Handle, LocalOptions};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// A proxy. Dropping it ends every call.
#[derive(Debug)]
pub struct Proxy {
    // Before the thread: without it, that one ends.
    orders: Option<mpsc::UnboundedSender<Order>>,
    thread: Option<JoinHandle<()>>,
    reactor: Handle,
}

/// A run whose sockets are served. Dropping it ends its calls.
#[derive(Debug)]
pub struct Serving {
    end: watch::Sender<bool>,
    ended: Option<oneshot::Receiver<()>>,
}

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

pub(crate) type Answering = Pin<Box<dyn Future<Output = ()>>>;

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
    end: watch::Receiver<bool>,
    ended: oneshot::Sender<()>,
}

/// A listening socket that the reactor knows.
enum Accepting {
    Tcp(TcpListener),
    Local(UnixListener),
    Fetches(Fetches),
}

/// Without descriptors nobody can be let in, and trying at once again would help nobody.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

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
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let named = std::thread::Builder::new().name("belljar-models".to_owned());
        let thread = named.spawn(move || {
            // It stays on its thread, and so whoever wakes a task of it there wakes nobody else.
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let built = builder.enable_io().enable_time().build_local(LocalOptions::default());
            // The other end waits below.
            let _ =
                tell.send(built.as_ref().map(|runtime| runtime.handle().clone()).map_err(io::Error::kind));
            if let Ok(runtime) = built {
                runtime.block_on(take_orders(taken, names));
            }
        })?;
        let reactor = told.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(Self { orders: Some(orders), thread: Some(thread), reactor })
    }

    /// Serves models to a run by these sockets, until what is returned is dropped.
    ///
    /// # Errors
    /// The system's, when one of them can't be listened to.
    pub fn serve(&self, run: Arc<Run>, listeners: Vec<Listener>) -> io::Result<Serving> {
        let make: Make = Box::new(|outside| Rc::new(Served::new(run, Rc::clone(&outside.pool))));
        self.order(make, listeners)
    }

    /// Serves the web to a run by these sockets, until what is returned is dropped.
    ///
    /// # Errors
    /// As [`Proxy::serve`].
    pub fn serve_web(&self, run: Arc<WebRun>, listeners: Vec<Listener>) -> io::Result<Serving> {
        let make: Make =
            Box::new(|outside| Rc::new(Gate::new(run, Rc::clone(&outside.names), Rc::clone(&outside.trust))));
        self.order(make, listeners)
    }

    fn order(&self, make: Make, listeners: Vec<Listener>) -> io::Result<Serving> {
        let _inside = self.reactor.enter();
        let listeners = listeners.into_iter().map(Listener::accepting).collect::<io::Result<_>>()?;
        let (end, ending) = watch::channel(false);
        let (ended, has_ended) = oneshot::channel();
        let order = Order { make, listeners, end: ending, ended };
        // The thread takes orders for as long as this lives.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
        Ok(Serving { end, ended: Some(has_ended) })
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
            Self::Fetches(fetches) => Ok(Accepting::Fetches(fetches)),
        }
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<Order>, names: NameSource) {
    let pool = Rc::new(Pool::new(names.clone()));
    let outside = Outside { pool, names: Rc::new(Names::new(names)), trust: Rc::default() };
    while let Some(Order { make, listeners, end, ended }) = orders.recv().await {
        let service = make(&outside);
        tokio::task::spawn_local(async move {
            serve(&service, listeners, &end).await;
            let _ = ended.send(());
        });
    }
}

/// Serves one run until it ends.
async fn serve(service: &Rc<dyn Service>, listeners: Vec<Accepting>, end: &watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
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

/// Allows this process the descriptors that it could allow itself anyway: a call takes two.
pub fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
