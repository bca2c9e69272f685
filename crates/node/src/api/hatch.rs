//! The status hatch of a sandbox: `POST /v1/jobs/{job_id}/status`, by sockets that only this sandbox has.
//!
//! There is no token: whose job it is, is known by the socket.

use super::answer::{self, Refusal, json};
use super::{body, serving};
use crate::job::reports::Reports;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::Response;
use axum::routing::post;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::status::StatusReport;
use belljar_egress::inference::proxy::Listener;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A hatch that is served. Dropping it ends its connections.
pub(crate) struct Served {
    _sockets: JoinSet<()>,
}

struct Hatch {
    reports: Arc<Reports>,
    /// Reports are read one after the other: what they hold of memory is what one of them holds.
    turn: Semaphore,
}

/// Connections at once, by one socket. More wait until one is closed. The runner's is made before anything else runs in there,
/// and is kept: nobody gets in its way.
const MOST_CONNECTIONS: usize = 16;

/// A socket that can't let anybody in tries again after so long.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The largest report, in bytes: a whole result may be in it.
const LARGEST_REPORT_BYTES: usize = 32 << 20;

/// Serves a sandbox's sockets.
pub(crate) fn serve(runtime: &Handle, reports: Arc<Reports>, sockets: Vec<OwnedFd>) -> io::Result<Served> {
    let _inside = runtime.enter();
    let routes = Router::new()
        .route("/v1/jobs/{job_id}/status", post(report).fallback(super::no_such_method))
        .fallback(nothing_here)
        .layer(middleware::from_fn(answer::told))
        .with_state(Arc::new(Hatch { reports, turn: Semaphore::new(1) }));
    let mut serving = JoinSet::new();
    for socket in sockets {
        let routes = routes.clone();
        match Listener::from_descriptor(socket)? {
            Listener::Tcp(socket) => {
                let socket = TcpListener::from_std(socket)?;
                serving.spawn(accept_all(routes, async move || Ok(socket.accept().await?.0)));
            }
            Listener::Local(socket) => {
                let socket = UnixListener::from_std(socket)?;
                serving.spawn(accept_all(routes, async move || Ok(socket.accept().await?.0)));
            }
        }
    }
    Ok(Served { _sockets: serving })
}

async fn accept_all<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    routes: Router,
    accept: impl AsyncFn() -> io::Result<S>,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok(stream) = accept().await else {
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        let connection = serving::connection(stream, routes.clone(), None, CancellationToken::new());
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn report(
    State(hatch): State<Arc<Hatch>>,
    Path(job_id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let own = hatch.reports.job_id();
    if !job_id.eq_ignore_ascii_case(own.as_str()) {
        return Err(Refusal::new(ProblemKind::NotFound, format!("this is the hatch of job {own} alone")));
    }
    let _turn = hatch.turn.acquire().await;
    let document = body::read(request, LARGEST_REPORT_BYTES).await?;
    let answer = hatch.reports.hear(StatusReport::parse(&document)?);
    let answer = answer.map_err(|error| Refusal::new(ProblemKind::Overloaded, error.to_string()))?;
    Ok(json(StatusCode::OK, &answer))
}

async fn nothing_here() -> Refusal {
    Refusal::new(
        ProblemKind::NotFound,
        "a job reports to `POST /v1/jobs/{job_id}/status`, and nowhere else here",
    )
}
