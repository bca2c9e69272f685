//! Canceling a job: `POST /v1/worker/jobs/{job_id}:cancel`.

use super::answer::Refusal;
use super::{SharedApi, job};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::time::Duration;

pub(super) async fn cancel(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let job_id = job::id(&name)?;
    let was_over = api.workplace.jobs.find(&job_id).await?.is_some_and(|job| job.life.state.is_final());
    let record = api.workplace.jobs.cancel(&job_id, Duration::ZERO, api.workplace.now()).await?;
    api.workplace.hub.ring(&job_id);
    if record.life.state.is_final() && !was_over {
        api.workplace.metrics.job_ended(record.life.state, None);
    }
    if !record.life.state.is_final() {
        api.dispatcher.cancel(&job_id, None);
    }
    job::answer(StatusCode::OK, &api.workplace.jobs, record).await
}
