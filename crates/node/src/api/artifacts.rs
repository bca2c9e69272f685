//! Artifacts of jobs: `GET /v1/worker/jobs/{job_id}/artifacts/{sha256}`.

use super::answer::Refusal;
use super::{SharedApi, job};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_contract::worker::problem::ProblemKind;
use belljar_store::artifacts::ArtifactsError;

pub(super) async fn content(
    State(api): State<SharedApi>,
    Path((name, sha256)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let job_id = job::id(&name)?;
    let missing =
        || Refusal::new(ProblemKind::NotFound, format!("the job {job_id} has left no artifact {sha256}"));
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // The digest must belong to this job: permission to read one job's files doesn't cover another's.
    let size = match is_digest {
        true => api.workplace.jobs.artifact_size(&job_id, &sha256).await?,
        false => None,
    };
    let size = size.ok_or_else(missing)?;
    let content = api.workplace.artifacts.read(&sha256).await.map_err(|error| match error {
        ArtifactsError::Missing { .. } => missing(),
        error => {
            tracing::warn!(error = crate::chain(&error), "an artifact can't be had");
            Refusal::new(ProblemKind::Unavailable, "the node can't reach the place where artifacts are kept")
        }
    })?;
    let mut response = Response::new(Body::from_stream(content));
    let headers = response.headers_mut();
    // The content comes from a sandbox: browsers must not render it as a page.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_LENGTH, size.into());
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{sha256}\"")) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}
