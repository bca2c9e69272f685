//! Whether the node lives, and whether it can do its work.

use super::Shared;
use axum::extract::State;
use axum::http::StatusCode;

/// `GET /healthz`: it answers, so it lives.
pub(super) async fn alive() -> &'static str {
    "ok"
}

/// `GET /readyz`: what it checked at its start stands, and it is not about to stop.
pub(super) async fn ready(State(api): State<Shared>) -> (StatusCode, String) {
    if api.stop.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is stopping".to_owned());
    }
    match api.workplace.jobs.instances().await {
        Ok(_) => (StatusCode::OK, "ready".to_owned()),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the node can't reach its database".to_owned()),
    }
}
