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
    if api.workplace.jobs.instances().await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node can't reach its database".to_owned());
    }
    let audit = std::sync::Arc::clone(&api.workplace.audit);
    // The files of statuses are small, and on a disk.
    let statuses = tokio::task::spawn_blocking(move || audit.anchor_statuses()).await.unwrap_or_default();
    let failing = statuses.iter().filter(|status| status.failing.is_some());
    match failing.map(|status| status.is_required).max() {
        Some(true) => (StatusCode::SERVICE_UNAVAILABLE, "a required audit anchor fails".to_owned()),
        Some(false) => (StatusCode::OK, "ready; an audit anchor fails".to_owned()),
        None => (StatusCode::OK, "ready".to_owned()),
    }
}
