//! Connections of clients that come over a network: as many as there is room for, each with a bound on how long it may take to say what
//! it wants.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at once. More wait until one is closed.
const MOST_CONNECTIONS: usize = 256;

/// A client has so long to say what it wants.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const LARGEST_HEAD_BYTES: usize = 64 << 10;

/// When it stops, requests that are under way have so long.
const GRACE: Duration = Duration::from_secs(2);

/// Out of descriptors, most likely: some will be closed.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Serves until it is stopped, and what is under way to its end, if that doesn't take long.
pub async fn serve(routes: Router, listener: TcpListener, stopped: CancellationToken) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stopped.cancelled() => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        let (routes, stopped) = (routes.clone(), stopped.clone());
        connections.spawn(async move {
            connection(stream, routes, stopped).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all).await;
}

/// Serves what comes by a connection, until it is closed or everything stops.
async fn connection(stream: TcpStream, routes: Router, stopped: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(LARGEST_HEAD_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(connection);
    // How a connection ends is its client's business: what it wanted is recorded, or was refused.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopped.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
