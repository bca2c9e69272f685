//! The status hatch of a sandbox: `POST /v1/jobs/{job_id}/status`, and `/mcp` for tools, on sockets that only this sandbox
//! has.
//!
//! There is no token: the socket identifies the job. Connections are served on the thread of the run ([`HatchThread`]), so
//! that one sandbox's requests delay neither other sandboxes nor the Worker API.

use super::answer::{self, Refusal, json};
use super::body;
use crate::job::reports::StatusReports;
use crate::tools::AgentSlot;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware;
use axum::response::Response;
use axum::routing::post;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::status::{StatusAnswer, StatusReport};
use belljar_egress::proxy::{AcceptedConnection, ConnectionFuture, Listener, ServedRun};
use belljar_execution::serving::HatchThread;
use belljar_gateway::{LARGEST_SHORT_BYTES, LONG_MESSAGES, hatch_connection};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// A hatch that is being served. Dropping it ends its connections.
pub(crate) struct ServedHatch {
    // Declared before the thread, which ends with its last user.
    _serving: ServedRun,
    _thread: Arc<HatchThread>,
    _seated: Option<AgentSlot>,
}

struct JobHatch {
    reports: Arc<StatusReports>,
    /// Number of reports so far. The lock serializes them.
    turn: Mutex<u32>,
}

/// Maximum number of concurrent connections; further ones wait. The runner connects before any other program runs in the
/// sandbox, and keeps its connection, so it can't be crowded out.
const MOST_CONNECTIONS: usize = 8;

/// Maximum time for a request's head on any connection but the first, which is the runner's.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// Maximum time for receiving a whole report.
const REPORT_WITHIN: Duration = Duration::from_secs(10);

/// Number of reports from which on each is throttled by [`PACE`], so that a job that reports endlessly doesn't take up the
/// node.
const UNPACED: u32 = 200;
const PACE: Duration = Duration::from_millis(20);

/// Maximum size of a report in bytes; it may contain a whole result.
const LARGEST_REPORT_BYTES: usize = 32 << 20;

/// Serves a sandbox's sockets: status reports of its job, and tool calls if `seated` is given. Must be called within the
/// node's runtime.
pub(crate) fn serve(
    thread: &Arc<HatchThread>,
    (reports, seated): (Arc<StatusReports>, Option<AgentSlot>),
    sockets: Vec<OwnedFd>,
) -> io::Result<ServedHatch> {
    let hatch = JobHatch { reports, turn: Mutex::default() };
    let routes = Router::new()
        .route("/v1/jobs/{job_id}/status", post(report).fallback(super::no_such_method))
        .fallback(nothing_here)
        .layer(middleware::from_fn(answer::told))
        .with_state(Arc::new(hatch));
    let routes = match &seated {
        Some(seated) => routes.merge(seated.routes.clone()),
        None => routes,
    };
    let (runtime, has_first) = (Handle::current(), AtomicBool::new(false));
    let answer = move |accepted| -> ConnectionFuture {
        let head_within = has_first.swap(true, Ordering::SeqCst).then_some(HEAD_WITHIN);
        let (routes, runtime) = (routes.clone(), runtime.clone());
        match accepted {
            AcceptedConnection::Tcp(stream) => {
                Box::pin(hatch_connection(stream, routes, head_within, runtime))
            }
            AcceptedConnection::Local(stream) => {
                Box::pin(hatch_connection(stream, routes, head_within, runtime))
            }
        }
    };
    let sockets = sockets.into_iter().map(Listener::from_descriptor).collect::<io::Result<Vec<_>>>()?;
    let serving = thread.proxy().serve_with(Box::new(answer), (sockets, MOST_CONNECTIONS))?;
    Ok(ServedHatch { _serving: serving, _thread: Arc::clone(thread), _seated: seated })
}

async fn report(
    State(hatch): State<Arc<JobHatch>>,
    Path(job_id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let own = hatch.reports.job_id();
    if !job_id.eq_ignore_ascii_case(own.as_str()) {
        return Err(Refusal::new(ProblemKind::NotFound, format!("this is the hatch of job {own} alone")));
    }
    let answer = match is_short(&request) {
        true => {
            let document = read(request, LARGEST_SHORT_BYTES).await?;
            hatch.hear(&document).await?
        }
        false => {
            // Tool calls have another queue, so a job's result doesn't wait for them.
            let turn = LONG_MESSAGES.enter(&format!("report {own}")).await;
            let turn = turn.map_err(|error| Refusal::new(ProblemKind::Overloaded, error.to_string()))?;
            let document = read(request, LARGEST_REPORT_BYTES).await?;
            let parsed = turn.work(move || StatusReport::parse(&document)).await;
            let died = |_| Refusal::new(ProblemKind::Internal, "the node has failed");
            hatch.hear_parsed(parsed.map_err(died)??).await?
        }
    };
    Ok(json(StatusCode::OK, &answer))
}

/// Returns true for a short report. A report with a result declares its length.
fn is_short(request: &Request) -> bool {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.is_none_or(|length: usize| length <= LARGEST_SHORT_BYTES)
}

async fn read(request: Request, most: usize) -> Result<Vec<u8>, Refusal> {
    let read = tokio::time::timeout(REPORT_WITHIN, body::read(request, most)).await;
    read.unwrap_or_else(|_| Err(Refusal::new(ProblemKind::Validation, "the body does not come to its end")))
}

// === impl JobHatch ===

impl JobHatch {
    async fn hear(&self, document: &[u8]) -> Result<StatusAnswer, Refusal> {
        self.hear_parsed(StatusReport::parse(document)?).await
    }

    async fn hear_parsed(&self, report: StatusReport) -> Result<StatusAnswer, Refusal> {
        let mut heard = self.turn.lock().await;
        *heard = heard.saturating_add(1);
        if *heard > UNPACED {
            tokio::time::sleep(PACE).await;
        }
        let answer = self.reports.hear(report);
        answer.map_err(|error| Refusal::new(ProblemKind::Overloaded, error.to_string()))
    }
}

async fn nothing_here() -> Refusal {
    Refusal::new(
        ProblemKind::NotFound,
        "a job reports to `POST /v1/jobs/{job_id}/status`, and nowhere else here",
    )
}
