//! Reading one job: `GET /v1/worker/jobs/{job_id}`.

use super::SharedApi;
use super::answer::{Refusal, json};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::id::JobId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::job::JobResponse;
use belljar_contract::worker::problem::ProblemKind;
use belljar_gateway::apart;
use belljar_store::database::DatabaseError;
use belljar_store::jobs::{JobRecord, Jobs};

pub(super) async fn show(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let job_id = id(&name)?;
    let found = api.workplace.jobs.find(&job_id).await?;
    let job = found.ok_or_else(|| unknown(&job_id))?;
    answer(StatusCode::OK, &api.workplace.jobs, job).await
}

/// The response about a job. An outcome may be long, so it is read and serialized apart from the runtime's threads.
pub(super) async fn answer(status: StatusCode, jobs: &Jobs, job: JobRecord) -> Result<Response, Refusal> {
    if !job.life.state.is_final() {
        return Ok(json(status, &response(jobs, job).await?));
    }
    let jobs = jobs.clone();
    let answered = apart(async move { Ok(json(status, &response(&jobs, job).await?)) }).await;
    answered.unwrap_or_else(|_| Err(Refusal::new(ProblemKind::Internal, "the node has failed")))
}

/// Returns a job with its outcome, if it is over.
pub(crate) async fn response(jobs: &Jobs, job: JobRecord) -> Result<JobResponse, DatabaseError> {
    let outcome = match job.life.state.is_final() {
        true => jobs.documents(&job).await?.1,
        false => None,
    };
    Ok(JobResponse { version: ApiVersion, job: job.summary(), outcome })
}

/// Parses the id in a path, with or without a verb behind it.
pub(super) fn id(name: &str) -> Result<JobId, Refusal> {
    let id = name.split_once(':').map_or(name, |(id, _)| id);
    JobId::parse(id)
        .map_err(|error| Refusal::new(ProblemKind::NotFound, format!("there is no job {id}: {error}")))
}

pub(super) fn unknown(job_id: &JobId) -> Refusal {
    Refusal::new(ProblemKind::NotFound, format!("there is no job {job_id}"))
}
