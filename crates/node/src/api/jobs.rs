//! The node's jobs: `GET /v1/worker/jobs`.

use super::Shared;
use super::answer::{Refusal, json};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::id::TaskId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::job::JobListResponse;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::{Filter, JobRecord};

/// What a page holds unless something else is said, and at most.
const USUAL: u32 = 100;
const MOST: u32 = 1_000;

pub(super) async fn list(State(api): State<Shared>, uri: Uri) -> Result<Response, Refusal> {
    let (filter, limit) = wanted(uri.query().unwrap_or_default())?;
    let page = api.workplace.jobs.page(&filter, limit).await?;
    let jobs = page.jobs.iter().map(JobRecord::summary).collect();
    let next_page_token = page.next.map(|number| number.to_string());
    Ok(json(StatusCode::OK, &JobListResponse { version: ApiVersion, jobs, next_page_token }))
}

fn wanted(query: &str) -> Result<(Filter, u32), Refusal> {
    let (mut filter, mut limit) = (Filter::default(), None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |expected: &str| {
            Refusal::new(ProblemKind::Validation, format!("the parameter {name}: expected {expected}"))
        };
        let is_new = match name {
            "task_id" => {
                let task = TaskId::parse(value).map_err(|_| wrong("a UUID"))?;
                filter.task_id.replace(task).is_none()
            }
            "status" => {
                let state = JobState::from_name(value).ok_or_else(|| wrong(&states()))?;
                filter.state.replace(state).is_none()
            }
            "page_token" => {
                let number = whole(value).ok_or_else(|| wrong("a `next_page_token` of this node"))?;
                filter.before.replace(number).is_none()
            }
            "limit" => {
                let number = whole(value).and_then(|number| u32::try_from(number).ok());
                let number = number.filter(|number| (1..=MOST).contains(number));
                limit.replace(number.ok_or_else(|| wrong(&format!("a number from 1 to {MOST}")))?).is_none()
            }
            _ => return Err(wrong("one of: task_id, status, limit, page_token")),
        };
        if !is_new {
            return Err(wrong("each parameter once"));
        }
    }
    Ok((filter, limit.unwrap_or(USUAL)))
}

/// Digits, and nothing else that a parser of numbers might take.
fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn states() -> String {
    let names: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    format!("one of: {}", names.join(", "))
}
