//! Acknowledging a job's result: `POST /v1/worker/jobs/{job_id}:ack`.

use super::answer::Refusal;
use super::{SharedApi, body, job};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::worker::acknowledgement::AcknowledgeRequest;

pub(super) async fn acknowledge(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let job_id = job::id(&name)?;
    let document = body::read(request, api.workplace.settings.max_request_bytes).await?;
    let AcknowledgeRequest { version: _, outcome_sha256 } = AcknowledgeRequest::parse(&document)?;
    let now = api.workplace.now();
    let record = api.workplace.jobs.acknowledge(&job_id, outcome_sha256, now).await?;
    job::answer(StatusCode::OK, &api.workplace.jobs, record).await
}
