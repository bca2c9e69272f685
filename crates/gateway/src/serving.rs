//! Connections of HTTP: as many as there is room for, each with a bound on how long its client may take to say what it wants.

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How much is served at once, and how long what is under way may take when it stops.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Connections at once. More wait until one is closed.
    pub connections: usize,
    /// For requests that are under way.
    pub grace: Duration,
}

/// A client has so long to say what it wants.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const LARGEST_HEAD_BYTES: usize = 64 << 10;

/// Out of descriptors, most likely: some will be closed.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Serves until it is stopped, and what is under way to its end.
pub async fn serve(routes: Router, listener: TcpListener, room: Room, stop: CancellationToken) {
    let Room { connections: most, grace } = room;
    let room = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&room).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        let (routes, stop) = (routes.clone(), stop.clone());
        let _ = stream.set_nodelay(true);
        connections.spawn(async move {
            connection((stream, Some(peer)), routes, HEAD_WITHIN, stop).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(grace, all).await;
}

/// Serves what comes by a connection, until it is closed or everything stops. A client that has not said what it wants within
/// that time has hung up. Each request is told whose it is, as far as a peer has an address.
pub async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    (stream, peer): (S, Option<SocketAddr>),
    routes: Router,
    head_within: impl Into<Option<Duration>>,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_within).max_buf_size(LARGEST_HEAD_BYTES);
    let service = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: hyper::Request<_>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        service.call(request)
    });
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    // How a connection ends is its client's business: what it wanted is recorded, or was refused.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
