//! Liveness and readiness of the node.

use super::SharedApi;
use super::answer::Refusal;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_contract::worker::problem::ProblemKind;
use std::sync::atomic::Ordering;

/// `GET /healthz`: liveness.
pub(super) async fn alive() -> &'static str {
    "ok"
}

/// `GET /readyz`: readiness. The node can reach and write its database and audit log, can make sandboxes, and is not
/// stopping.
pub(super) async fn ready(State(api): State<SharedApi>) -> (StatusCode, String) {
    if let Some(why) = why_unready(&api).await {
        return (StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    }
    let audit = std::sync::Arc::clone(&api.workplace.audit);
    // Reading the status files blocks on the disk; they are small.
    let statuses = tokio::task::spawn_blocking(move || audit.anchor_statuses()).await.unwrap_or_default();
    let workplace = std::sync::Arc::clone(&api.workplace);
    let has_engine =
        tokio::task::spawn_blocking(move || workplace.images.has_engine()).await.unwrap_or(false);
    let failing = statuses.iter().filter(|status| status.failing.is_some());
    match failing.map(|status| status.is_required).max() {
        Some(true) => (StatusCode::SERVICE_UNAVAILABLE, "a required audit anchor fails".to_owned()),
        Some(false) => (StatusCode::OK, "ready; an audit anchor fails".to_owned()),
        None if !has_engine => (StatusCode::OK, "ready; the container engine doesn't answer".to_owned()),
        None => (StatusCode::OK, "ready".to_owned()),
    }
}

/// Returns why the node is not ready. Clients without a token may call this too, so it causes at most one canary sandbox per
/// ten seconds.
async fn why_unready(api: &SharedApi) -> Option<&'static str> {
    let workplace = &api.workplace;
    if api.stop.is_cancelled() {
        return Some("the node is stopping");
    }
    if workplace.jobs.instances().await.is_err() {
        return Some("the node can't reach its database");
    }
    if workplace.jobs.is_damaged() {
        return Some("the node's database is damaged");
    }
    if !workplace.is_recording.load(Ordering::Relaxed) {
        return Some("the node can't write to its database");
    }
    let unrecorded = workplace.why_unrecorded();
    unrecorded.or_else(|| {
        (!workplace.canary.is_well()).then_some("the node can't make sandboxes; its log says why")
    })
}

/// Checks that the effects of a request can be recorded.
pub(super) fn check_recorded(api: &SharedApi) -> Result<(), Refusal> {
    let why = api.workplace.why_unrecorded();
    why.map_or(Ok(()), |why| Err(Refusal::new(ProblemKind::Unavailable, why)))
}
