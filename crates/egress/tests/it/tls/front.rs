//! TLS server in front of a model server, which can be told to misbehave.

use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// TLS server. Dropping it ends every connection.
pub(crate) struct TlsServer {
    address: SocketAddr,
    seen: Arc<Mutex<TlsServerEvents>>,
    tell: Option<watch::Sender<TlsServerAction>>,
    thread: Option<JoinHandle<()>>,
}

/// Events that the server has seen.
#[derive(Debug, Default, Clone)]
pub(crate) struct TlsServerEvents {
    pub(crate) accepted: usize,
    /// Requested server names, and negotiated protocols.
    pub(crate) agreed: Vec<(Option<String>, Option<Vec<u8>>)>,
    pub(crate) failures: Vec<String>,
    /// Number of orders that were carried out.
    pub(crate) done: usize,
}

/// Order for every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsServerAction {
    None,
    /// Closes with a TLS close notification.
    SayGoodbye,
    /// Closes.
    HangUp,
    /// Updates its keys and requests the same of the other end.
    ChangeKeys,
    /// Sends unrequested data.
    Say(&'static str),
}

// === impl TlsServer ===

impl TlsServer {
    /// Starts a server that forwards decrypted bytes to `to`.
    pub(crate) fn start(config: ServerConfig, to: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = watch::channel(TlsServerAction::None);
        let seen = Arc::new(Mutex::new(TlsServerEvents::default()));
        let shared = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            LocalSet::new().block_on(&runtime, serve(listener, config, to, (shared, told)));
        });
        Self { address, seen, tell: Some(tell), thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn seen(&self) -> TlsServerEvents {
        self.seen.lock().unwrap().clone()
    }

    /// Gives the only connection an order, and waits until it was carried out.
    pub(crate) fn order(&self, order: TlsServerAction) {
        let before = self.seen().done;
        self.tell.as_ref().unwrap().send(order).unwrap();
        belljar_testkit::wait::until(|| self.seen().done > before);
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.tell.take();
        let _ = self.thread.take().unwrap().join();
    }
}

async fn serve(
    listener: std::net::TcpListener,
    config: ServerConfig,
    to: SocketAddr,
    (seen, told): (Arc<Mutex<TlsServerEvents>>, watch::Receiver<TlsServerAction>),
) {
    let listener = TcpListener::from_std(listener).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let mut over = told.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                seen.lock().unwrap().accepted += 1;
                let (acceptor, seen, told) = (acceptor.clone(), Arc::clone(&seen), told.clone());
                tokio::task::spawn_local(async move { connection(stream, acceptor, to, (seen, told)).await });
            }
            changed = over.changed() => if changed.is_err() { return },
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    to: SocketAddr,
    (seen, mut told): (Arc<Mutex<TlsServerEvents>>, watch::Receiver<TlsServerAction>),
) {
    stream.set_nodelay(true).unwrap();
    told.mark_unchanged();
    let mut client = match acceptor.accept(stream).await {
        Ok(client) => client,
        Err(error) => return seen.lock().unwrap().failures.push(error.to_string()),
    };
    let session = client.get_ref().1;
    let agreed = (session.server_name().map(str::to_owned), session.alpn_protocol().map(<[u8]>::to_vec));
    seen.lock().unwrap().agreed.push(agreed);
    let mut server = TcpStream::connect(to).await.unwrap();
    loop {
        tokio::select! {
            copied = copy_bidirectional(&mut client, &mut server) => {
                let _ = copied;
                return;
            }
            changed = told.changed() => {
                let Ok(()) = changed else { return };
                let order = *told.borrow_and_update();
                let goes_on = carry_out(order, &mut client).await;
                if !goes_on {
                    drop(client);
                    seen.lock().unwrap().done += 1;
                    return;
                }
                seen.lock().unwrap().done += 1;
            }
        }
    }
}

/// Returns true if the connection goes on.
async fn carry_out(order: TlsServerAction, client: &mut TlsStream<TcpStream>) -> bool {
    match order {
        TlsServerAction::None => true,
        TlsServerAction::SayGoodbye => {
            client.shutdown().await.unwrap();
            false
        }
        TlsServerAction::HangUp => false,
        TlsServerAction::ChangeKeys => {
            client.get_mut().1.refresh_traffic_keys().unwrap();
            client.flush().await.unwrap();
            true
        }
        TlsServerAction::Say(text) => {
            client.write_all(text.as_bytes()).await.unwrap();
            client.flush().await.unwrap();
            true
        }
    }
}
