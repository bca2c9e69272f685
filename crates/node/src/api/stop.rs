//! Stopping the orchestrator's work: one job, or all jobs and sessions.

use super::answer::{Refusal, json};
use super::{SharedApi, body};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::id::JobId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::state::JobState;
use belljar_contract::worker::stop::{StopAllRequest, StopAllResponse, StopJobRequest, StopJobResponse};
use belljar_store::jobs::{ChangeError, JobListFilter, JobRecord};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time until a killed job is over.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// Interval at which the database is polled for the end of a job that another node may run.
const LOOK: Duration = Duration::from_millis(500);

const MOST_REQUEST_BYTES: usize = 64 << 10;

const PAGE: u32 = 1_000;

/// `POST /v1/worker/jobs:stop`: asks a job to end, and kills it after the grace period. Stopping an ended or unknown job
/// succeeds.
pub(super) async fn stop(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let wanted = StopJobRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let grace = wanted.grace();
    let StopJobRequest { task_id, job_id, .. } = wanted;
    let known = api.workplace.jobs.find(&job_id).await?;
    if let Some(other) = known.as_ref().filter(|job| job.task_id.key() != task_id.key()) {
        let detail = format!("$.task_id: job {job_id} belongs to task {}", other.task_id);
        return Err(Refusal::new(ProblemKind::Conflict, detail));
    }
    let was_running = known.as_ref().is_some_and(|job| !job.life.state.is_final());
    let mut status = known.map(|job| job.life.state);
    if was_running {
        ask(&api, &job_id, grace).await?;
        status = Some(until_over(&api, &job_id, Instant::now() + grace + AFTER_KILL).await?);
    }
    Ok(json(StatusCode::OK, &StopJobResponse { version: ApiVersion, task_id, job_id, was_running, status }))
}

/// `POST /v1/worker/admin/stop-all-orchestrator-directed`: stops all jobs and sessions.
pub(super) async fn stop_all(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let wanted = StopAllRequest::parse(&body::read_or_nothing(request, MOST_REQUEST_BYTES).await?)?;
    // Every job is asked before any is waited for, and one failure doesn't keep others from being asked.
    let (mut stopped, mut failed) = (Vec::new(), None);
    for job in unfinished(&api).await? {
        match ask(&api, &job.job_id, wanted.grace()).await {
            Ok(()) => stopped.push(job.job_id),
            // It has ended meanwhile, and its record is removed.
            Err(ChangeError::Unknown { .. }) => {}
            Err(error) => failed = Some(error),
        }
    }
    let sessions = Arc::clone(&api.sessions);
    let sessions = tokio::spawn(async move { sessions.end_all().await });
    let given_up = Instant::now() + wanted.grace() + AFTER_KILL;
    let mut still_running = 0;
    for job_id in &stopped {
        still_running += u64::from(!until_over(&api, job_id, given_up).await?.is_final());
    }
    let ended_sessions = sessions.await.unwrap_or_default();
    if let Some(error) = failed {
        return Err(error.into());
    }
    let stopped_jobs = stopped.len() as u64 - still_running;
    let answer = StopAllResponse { version: ApiVersion, stopped_jobs, ended_sessions, still_running };
    Ok(json(StatusCode::OK, &answer))
}

/// Records that a job is to stop, and asks it to if it runs here. A waiting job is over with that.
async fn ask(api: &SharedApi, job_id: &JobId, grace: Duration) -> Result<(), ChangeError> {
    // A run here is asked at once; another node sees the request in the database.
    api.dispatcher.cancel(job_id, Some(grace));
    let record = api.workplace.jobs.cancel(job_id, grace, api.workplace.now()).await?;
    if !record.life.state.is_final() {
        // The job may have begun in between.
        api.dispatcher.cancel(job_id, Some(grace));
    }
    api.workplace.hub.ring(job_id);
    Ok(())
}

/// Waits until a job is over, or until that time.
async fn until_over(api: &SharedApi, job_id: &JobId, given_up: Instant) -> Result<JobState, Refusal> {
    let mut listener = api.workplace.hub.listen(job_id);
    loop {
        // A job without a record is over.
        let found = api.workplace.jobs.find(job_id).await?;
        let state = found.map_or(JobState::Canceled, |job| job.life.state);
        let left = given_up.saturating_duration_since(Instant::now());
        if state.is_final() || left.is_zero() {
            return Ok(state);
        }
        tokio::select! {
            () = listener.heard() => {}
            () = tokio::time::sleep(LOOK.min(left)) => {}
        }
    }
}

async fn unfinished(api: &SharedApi) -> Result<Vec<JobRecord>, Refusal> {
    let mut jobs = Vec::new();
    for state in [JobState::Accepted, JobState::InProgress] {
        let mut before = None;
        loop {
            let filter = JobListFilter { state: Some(state), before, ..JobListFilter::default() };
            let page = api.workplace.jobs.page(&filter, PAGE).await?;
            jobs.extend(page.jobs);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(jobs)
}
