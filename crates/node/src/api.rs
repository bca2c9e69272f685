//! The Worker API server: one file per resource. Around all of them: authentication, request size limits, and the error
//! responses.

mod acknowledgement;
mod agent_tokens;
mod answer;
mod approvals;
mod artifacts;
mod body;
mod cancellation;
mod endpoints;
mod events;
mod grants;
pub(crate) mod hatch;
mod health;
mod job;
mod jobs;
mod managed;
mod mcp;
mod pty;
mod query;
mod run;
mod sessions;
mod stop;
mod telemetry;
pub mod token;
mod tool_calls;
mod trust;

pub(crate) use job::response;

use crate::delivery::Deliverer;
use crate::denials::DenialReason;
use crate::job::NodeState;
use crate::job::dispatcher::Dispatcher;
use crate::metrics;
use crate::session::Sessions;
use answer::Refusal;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::handler::Handler;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use belljar_contract::worker::openapi;
use belljar_contract::worker::operation::Operation;
use belljar_contract::worker::problem::ProblemKind;
use belljar_gateway::{ConnectionLimits, ConnectionSlot, ServerLimits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// State of the endpoints.
pub(crate) struct Api {
    pub(crate) workplace: Arc<NodeState>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) deliverer: Arc<Deliverer>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) stop: CancellationToken,
}

type SharedApi = Arc<Api>;

/// Connection limits of the Worker API (docs/concepts/node.md has these numbers).
const ROOM: ServerLimits = ServerLimits {
    connections: ConnectionLimits {
        authenticated: 1_024,
        unauthenticated: 512,
        unauthenticated_per_peer: 256,
        authenticate_within: Duration::from_secs(10),
    },
    grace: Duration::from_secs(5),
};

/// Serves the Worker API until it is stopped, and finishes requests that are under way.
pub(crate) async fn serve(api: SharedApi, listener: TcpListener, stop: CancellationToken) {
    belljar_gateway::serve(router(api), listener, ROOM, stop).await;
}

/// Every endpoint, made from the list of operations that the OpenAPI document is made from, too.
pub(crate) fn router(api: SharedApi) -> Router {
    let (open, guarded): (Vec<_>, Vec<_>) = Operation::ALL.into_iter().partition(|one| one.is_open());
    let guarded = routed(&guarded)
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(Arc::clone(&api), guard));
    let counted = middleware::from_fn_with_state(Arc::clone(&api), count);
    let tools = mcp::routes(&api);
    let worker = routed(&open).merge(guarded).layer(middleware::from_fn(answer::told)).with_state(api);
    worker.merge(tools).layer(counted)
}

/// The endpoints that require the node's token, for callers in this process, which need none.
pub(crate) fn unguarded(api: SharedApi) -> Router {
    let guarded: Vec<_> = Operation::ALL.into_iter().filter(|one| !one.is_open()).collect();
    routed(&guarded).fallback(nothing_here).layer(middleware::from_fn(answer::told)).with_state(api)
}

fn routed(operations: &[Operation]) -> Router<SharedApi> {
    let mut by_path = BTreeMap::<&str, MethodRouter<SharedApi>>::new();
    for operation in operations {
        let (_, path) = operation.route();
        // The verb behind a path parameter is not part of the route: the handler reads it.
        let path = path.rfind('}').filter(|at| path[*at..].starts_with("}:")).map_or(path, |at| &path[..=at]);
        let methods = by_path.remove(path).unwrap_or_default().merge(handler(*operation));
        by_path.insert(path, methods);
    }
    by_path.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, only(methods)))
}

fn handler(operation: Operation) -> MethodRouter<SharedApi> {
    match operation {
        Operation::Alive => get(health::alive),
        Operation::Ready => get(health::ready),
        Operation::Metrics => get(counts),
        Operation::Describe => get(description),
        Operation::RunJob => post(run::run),
        Operation::StopJob => post(stop::stop),
        Operation::StopAll => post(stop::stop_all),
        Operation::ListJobs => get(jobs::list),
        Operation::ShowJob => get(show_job),
        Operation::FollowJob => get(events::events),
        Operation::CancelJob => post(act_on_job),
        // Served by the handler above.
        Operation::AcknowledgeJob => MethodRouter::new(),
        Operation::FetchArtifact => get(artifacts::content),
        Operation::OpenSession => post(sessions::open),
        Operation::ListSessions => get(sessions::list),
        Operation::ShowSession => get(sessions::show),
        Operation::ExecInSession => post(sessions::exec),
        Operation::EndSession => post(sessions::end),
        Operation::OpenPty => post(pty::open),
        Operation::SendPty => post(pty::send),
        Operation::ResizePty => post(pty::resize),
        Operation::ClosePty => post(pty::close),
        Operation::ReceivePty => get(pty::receive),
        Operation::AttachPty => get(pty::attach),
        Operation::ProxyHttp => post(managed::proxy_http),
        Operation::IssueToken => post(agent_tokens::issue),
        Operation::RevokeToken => post(agent_tokens::revoke),
        Operation::CallTool => post(tool_calls::call),
        Operation::IssueGrant => post(grants::issue),
        Operation::ListGrants => get(grants::list),
        Operation::RevokeGrant => post(grants::revoke),
        Operation::ValidateGrant => post(grants::validate),
        Operation::ListApprovals => get(approvals::list),
        Operation::ShowApproval => get(show_approval),
        Operation::ApproveCall => post(answer_approval),
        // Served by the handler above.
        Operation::DenyCall => MethodRouter::new(),
        Operation::ListTrust => get(trust::list),
        Operation::ShowTrust => get(trust::show),
        Operation::RecordTrustEvent => post(trust::record),
        Operation::ApprovePromotion => post(answer_promotion),
        // Served by the handler above.
        Operation::DenyPromotion => MethodRouter::new(),
        Operation::SetTrustLevel => post(trust::set_level),
        Operation::VerifyAgent => post(trust::verify),
        Operation::NodeInfo => get(telemetry::info),
        Operation::NodeStats => get(telemetry::stats),
        Operation::ListContainers => get(telemetry::containers),
        Operation::ShowContainer => get(telemetry::container),
        Operation::ReadLogs => get(telemetry::logs),
    }
}

/// `GET /metrics`.
async fn counts(State(api): State<SharedApi>) -> Response {
    let text = api.workplace.metrics.text(api.sessions.all().len());
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

/// `GET /v1/worker/openapi.json`.
async fn description() -> Response {
    answer::json(StatusCode::OK, &openapi::document())
}

/// An endpoint that answers other methods with 405.
fn only(methods: MethodRouter<SharedApi>) -> MethodRouter<SharedApi> {
    methods.fallback(no_such_method)
}

/// `POST /v1/worker/jobs/{job_id}:{verb}`.
async fn act_on_job(State(api): State<SharedApi>, Path(name): Path<String>, request: Request) -> Response {
    let verb = name.rsplit_once(':').map(|(_, verb)| verb);
    match verb {
        Some("cancel") => cancellation::cancel.call(request, api).await,
        Some("ack") => acknowledgement::acknowledge.call(request, api).await,
        Some(_) => nothing_here().await.into_response(),
        None => no_such_method(request.method().clone()).await.into_response(),
    }
}

/// `GET /v1/worker/jobs/{job_id}`.
async fn show_job(State(api): State<SharedApi>, Path(name): Path<String>, request: Request) -> Response {
    match name.rsplit_once(':').map(|(_, verb)| verb) {
        Some("cancel" | "ack") => no_such_method(request.method().clone()).await.into_response(),
        _ => job::show.call(request, api).await,
    }
}

/// `POST /v1/worker/approvals/{approval_id}:{verb}`.
async fn answer_approval(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    match name.rsplit_once(':').map(|(_, verb)| verb) {
        Some("approve") => approvals::approve.call(request, api).await,
        Some("deny") => approvals::deny.call(request, api).await,
        Some(_) => nothing_here().await.into_response(),
        None => no_such_method(request.method().clone()).await.into_response(),
    }
}

/// `GET /v1/worker/approvals/{approval_id}`.
async fn show_approval(State(api): State<SharedApi>, Path(name): Path<String>, request: Request) -> Response {
    match name.rsplit_once(':').map(|(_, verb)| verb) {
        Some("approve" | "deny") => no_such_method(request.method().clone()).await.into_response(),
        _ => approvals::show.call(request, api).await,
    }
}

/// `POST /v1/worker/trust/{agent_id}/proposals/{proposal_id}:{verb}`.
async fn answer_promotion(
    State(api): State<SharedApi>,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    match name.rsplit_once(':').map(|(_, verb)| verb) {
        Some("approve") => trust::approve.call(request, api).await,
        Some("deny") => trust::deny.call(request, api).await,
        _ => nothing_here().await.into_response(),
    }
}

/// Counts responses, and records denials in the audit log.
async fn count(State(api): State<SharedApi>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_asked = |operation: &Operation| operation.route().0.as_str() == method.as_str();
    let operation = Operation::at(&path).find(is_asked);
    let response = next.run(request).await;
    if let Some(denied) = response.extensions().get::<DenialReason>() {
        api.workplace.denials.note(denied, method.as_str(), &path);
    }
    api.workplace.metrics.answered(operation, response.status().as_u16());
    response
}

/// Admits only requests that carry the node's token.
async fn guard(State(api): State<SharedApi>, request: Request, next: Next) -> Response {
    match api.workplace.settings.token.admits(request.headers()) {
        true => {
            if let Some(place) = request.extensions().get::<Arc<ConnectionSlot>>() {
                place.authenticated();
            }
            next.run(request).await
        }
        false => Refusal::new(
            ProblemKind::Authentication,
            "`Authorization: Bearer` with the node's token is missing, or it is another token",
        )
        .into_response(),
    }
}

async fn nothing_here() -> Refusal {
    Refusal::new(ProblemKind::NotFound, "the Worker API has no such endpoint")
}

async fn no_such_method(method: Method) -> Refusal {
    Refusal::new(ProblemKind::MethodNotAllowed, format!("{method} means nothing here"))
}
