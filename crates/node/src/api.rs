//! The Worker API, as a server: a resource a file, and around all of them who may ask, how much is read, and what is
//! answered when something is wrong.

mod acknowledgement;
mod answer;
mod artifacts;
mod body;
mod cancellation;
mod events;
pub(crate) mod hatch;
mod health;
mod job;
mod jobs;
mod pty;
mod query;
mod run;
mod serving;
mod sessions;
mod stop;
mod telemetry;
pub mod token;

pub(crate) use job::response;
pub(crate) use serving::serve;

use crate::delivery::Deliverer;
use crate::job::Workplace;
use crate::job::dispatcher::Dispatcher;
use crate::session::Sessions;
use answer::Refusal;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use belljar_contract::worker::problem::ProblemKind;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What the endpoints work with.
pub(crate) struct Api {
    pub(crate) workplace: Arc<Workplace>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) deliverer: Arc<Deliverer>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) stop: CancellationToken,
}

type Shared = Arc<Api>;

/// Every endpoint.
pub(crate) fn router(api: Shared) -> Router {
    let guarded = Router::new()
        .route("/v1/worker/jobs:run", only(post(run::run)))
        .route("/v1/worker/sessions", only(post(sessions::open).get(sessions::list)))
        .route("/v1/worker/sessions/{session}", only(get(sessions::show)))
        .route("/v1/worker/sessions/{session}/exec", only(post(sessions::exec)))
        .route("/v1/worker/sessions/{session}/end", only(post(sessions::end)))
        .route("/v1/worker/sessions/{session}/pty:open", only(post(pty::open)))
        .route("/v1/worker/sessions/{session}/pty:send", only(post(pty::send)))
        .route("/v1/worker/sessions/{session}/pty:resize", only(post(pty::resize)))
        .route("/v1/worker/sessions/{session}/pty:close", only(post(pty::close)))
        .route("/v1/worker/sessions/{session}/pty:recv", only(get(pty::receive)))
        .route("/v1/worker/sessions/{session}/pty:attach", only(get(pty::attach)))
        .route("/v1/worker/telemetry/node:info", only(get(telemetry::info)))
        .route("/v1/worker/telemetry/node:stats", only(get(telemetry::stats)))
        .route("/v1/worker/telemetry/containers", only(get(telemetry::containers)))
        .route("/v1/worker/telemetry/containers/{container}", only(get(telemetry::container)))
        .route("/v1/worker/telemetry/logs", only(get(telemetry::logs)))
        .route("/v1/worker/jobs:stop", only(post(stop::stop)))
        .route("/v1/worker/admin/stop-all-orchestrator-directed", only(post(stop::stop_all)))
        .route("/v1/worker/jobs", only(get(jobs::list)))
        .route("/v1/worker/jobs/{job}", only(get(job::show).post(act_on_job)))
        .route("/v1/worker/jobs/{job}/events", only(get(events::events)))
        .route("/v1/worker/jobs/{job}/artifacts/{sha256}", only(get(artifacts::content)))
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(Arc::clone(&api), guard));
    Router::new()
        .route("/healthz", only(get(health::alive)))
        .route("/readyz", only(get(health::ready)))
        .merge(guarded)
        .layer(middleware::from_fn(answer::told))
        .with_state(api)
}

/// An endpoint that has no other methods.
fn only(methods: MethodRouter<Shared>) -> MethodRouter<Shared> {
    methods.fallback(no_such_method)
}

/// `POST /v1/worker/jobs/{job_id}:{verb}`.
async fn act_on_job(State(api): State<Shared>, Path(name): Path<String>, request: Request) -> Response {
    let verb = name.rsplit_once(':').map(|(_, verb)| verb);
    match verb {
        Some("cancel") => cancellation::cancel.call(request, api).await,
        Some("ack") => acknowledgement::acknowledge.call(request, api).await,
        _ => nothing_here().await.into_response(),
    }
}

/// Lets only those through who show the token.
async fn guard(State(api): State<Shared>, request: Request, next: Next) -> Response {
    match api.workplace.settings.token.admits(request.headers()) {
        true => next.run(request).await,
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
