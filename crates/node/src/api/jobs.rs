//! Listing the node's jobs: `GET /v1/worker/jobs`.

use super::SharedApi;
use super::answer::{Refusal, json};
use super::query::{Query, whole};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::id::TaskId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::job::JobListResponse;
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::{JobListFilter, JobRecord};

/// Default and maximum number of jobs per page.
const USUAL: u32 = 100;
const MOST: u32 = 1_000;

pub(super) async fn list(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let (filter, limit) = wanted(uri.query().unwrap_or_default())?;
    let page = api.workplace.jobs.page(&filter, limit).await?;
    let jobs = page.jobs.iter().map(JobRecord::summary).collect();
    let next_page_token = page.next.map(|number| number.to_string());
    Ok(json(StatusCode::OK, &JobListResponse { version: ApiVersion, jobs, next_page_token }))
}

fn wanted(query: &str) -> Result<(JobListFilter, u32), Refusal> {
    let mut query = Query::parse(query)?;
    let filter = JobListFilter {
        task_id: query.optional("task_id", "a UUID", |text| TaskId::parse(text).ok())?,
        state: query.optional("status", &states(), JobState::from_name)?,
        before: query.optional("page_token", "a `next_page_token` of this node", whole)?,
        ..JobListFilter::default()
    };
    let limit = query.limit(USUAL, MOST)?;
    query.finish()?;
    Ok((filter, limit))
}

fn states() -> String {
    let names: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    format!("one of: {}", names.join(", "))
}
