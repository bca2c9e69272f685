//! Ends of jobs: reported by the owner, cancelled by a client, or because the owner is gone.

use super::Jobs;
use super::draft::JobDraft;
use super::error::ChangeError;
use super::events::JobNews;
use super::record::{JobRecord, Outcome};
use crate::database::{DatabaseError, unreadable, values};
use crate::trust::{RECORD_ONCE, values_of};
use belljar_contract::failure::FailureCode;
use belljar_contract::id::JobId;
use belljar_contract::trust::TrustEvent;
use belljar_contract::worker::event::JobEventKind;
use belljar_contract::worker::job::JobOutcome;
use belljar_contract::worker::state::JobState;
use belljar_policy::lifecycle::{Fence, LifecycleChange, LifecycleEvent, ReportedEnding};
use jiff::Timestamp;
use std::time::Duration;

/// Final report on a job.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalReport {
    /// Events that the owner has not reported before.
    pub untold: JobNews,
    /// Outcome of the job.
    pub ending: ReportedEnding,
    /// Outcome of the job.
    pub outcome: JobOutcome,
    /// Trust event that is recorded for the job's agent, once; `None` if the job earns nothing.
    pub trust: Option<TrustEvent>,
}

/// The recorded end of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEnd {
    /// The end was recorded now.
    Now(JobRecord),
    /// The job had ended before.
    Before(JobRecord),
}

/// Reason why an owner leaves a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The owner died or was stopped; how far the job came is unknown.
    Gone,
    /// The owner has not started the job.
    Unbegun,
}

const ADD_ARTIFACT: &str =
    "INSERT INTO artifacts (job, place, path, sha256, size_bytes) VALUES ($1, $2, $3, $4, $5)";

const CANCELED: &str = "the job was canceled before it began";
const CANCELED_AND_LEFT: &str = "the job was canceled, and its node was gone before it had ended it";
const GONE: &str = "the node died or was stopped under the job, and it may not be begun again";

// === impl Jobs ===

impl Jobs {
    /// Records the end of a job for its owner, after the events that the owner has not reported yet. Repeating the same
    /// report changes nothing.
    ///
    /// # Errors
    /// [`ChangeError`] when the job has another owner by now, or has ended otherwise.
    pub async fn end(
        &self,
        job_id: &JobId,
        fence: Fence,
        FinalReport { untold, ending, outcome, trust }: FinalReport,
        now: Timestamp,
    ) -> Result<JobEnd, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let written = Outcome::new(&outcome).map_err(|error| unreadable(error.into()))?;
            let mut draft = JobDraft::of(&jobs.database, &job_id).await?;
            if !draft.job.life.state.is_final() {
                untold.record(&mut draft, fence)?;
            }
            if draft.job.life.apply(LifecycleEvent::End(fence, ending))? == LifecycleChange::Unchanged {
                let is_same = draft.job.outcome_sha256.as_deref() == Some(written.sha256());
                return if is_same { Ok(JobEnd::Before(draft.job)) } else { Err(ChangeError::OtherOutcome) };
            }
            for (place, artifact) in (0_u64..).zip(&outcome.artifacts) {
                let (path, sha256) = (artifact.path.as_str(), artifact.sha256.as_str());
                let values = values![draft.job.number, place, path, sha256, artifact.size_bytes];
                draft.also(ADD_ARTIFACT, values).await?;
            }
            if let Some(event) = &trust {
                draft.also(RECORD_ONCE, values_of(event)?).await?;
            }
            draft.conclude(&written, outcome.failure_code, now)?;
            Ok(JobEnd::Now(draft.write("end").await?))
        })
        .await
    }

    /// Requests cancellation of a job. A job that has not begun ends at once; any other is ended by its owner, which gives
    /// it `grace` to end by itself. A repeated request only shortens that, and changes nothing for a job that is over.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job.
    pub async fn cancel(
        &self,
        job_id: &JobId,
        grace: Duration,
        now: Timestamp,
    ) -> Result<JobRecord, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut draft = JobDraft::of(&jobs.database, &job_id).await?;
            if draft.job.life.apply(LifecycleEvent::Cancel)? == LifecycleChange::Unchanged {
                let is_sooner = grace < draft.job.grace && !draft.job.life.state.is_final();
                if !is_sooner {
                    return Ok(draft.job);
                }
                draft.job.grace = grace;
                return Ok(draft.write("cancel").await?);
            }
            draft.job.grace = grace;
            draft.add(now, &JobEventKind::CancelRequested)?;
            if draft.job.life.state.is_final() {
                conclude_without_owner(&mut draft, CANCELED, now)?;
            }
            Ok(draft.write("cancel").await?)
        })
        .await
    }

    /// Records that an owner has left a job: it waits for another owner, or is over.
    ///
    /// # Errors
    /// [`ChangeError`] when the job has another owner by now.
    pub async fn leave(
        &self,
        job_id: &JobId,
        fence: Fence,
        left: ReleaseReason,
        now: Timestamp,
    ) -> Result<JobRecord, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut draft = JobDraft::of(&jobs.database, &job_id).await?;
            draft.job.life.apply(match left {
                ReleaseReason::Gone => LifecycleEvent::Lose(fence),
                ReleaseReason::Unbegun => LifecycleEvent::GiveBack(fence),
            })?;
            if draft.job.life.state.is_final() {
                let why = match (draft.job.life.state, left) {
                    (JobState::Canceled, ReleaseReason::Unbegun) => CANCELED,
                    (JobState::Canceled, ReleaseReason::Gone) => CANCELED_AND_LEFT,
                    _ => GONE,
                };
                conclude_without_owner(&mut draft, why, now)?;
            } else {
                draft.release(now);
                (draft.job.run_id, draft.job.started_at) = (None, None);
                draft.add_status(now, None)?;
            }
            Ok(draft.write("leave").await?)
        })
        .await
    }

    /// Records that the client has the result of a job; retention for acknowledged jobs applies from then on.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job, or it isn't over, or the digest is that of another outcome.
    pub async fn acknowledge(
        &self,
        job_id: &JobId,
        sha256: Option<String>,
        now: Timestamp,
    ) -> Result<JobRecord, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut draft = JobDraft::of(&jobs.database, &job_id).await?;
            if !draft.job.life.state.is_final() {
                return Err(ChangeError::NotOver { job_id });
            }
            if sha256.is_some() && sha256 != draft.job.outcome_sha256 {
                return Err(ChangeError::OtherOutcome);
            }
            if draft.job.acknowledged_at.is_some() {
                return Ok(draft.job);
            }
            draft.job.acknowledged_at = Some(now);
            Ok(draft.write("acknowledge").await?)
        })
        .await
    }
}

/// Ends a claimed job that no instance can carry out.
pub(super) fn refuse(draft: &mut JobDraft, why: &str, now: Timestamp) -> Result<(), DatabaseError> {
    let refused = draft.job.life.apply(LifecycleEvent::End(draft.job.life.fence, ReportedEnding::Failed));
    refused.map_err(|refused| unreadable(refused.into()))?;
    let why = format!("the node can't read what it accepted: {why}");
    conclude_as(draft, FailureCode::InternalError, why, now)
}

fn conclude_without_owner(draft: &mut JobDraft, why: &str, now: Timestamp) -> Result<(), DatabaseError> {
    let code = match draft.job.life.state {
        JobState::Canceled => FailureCode::Canceled,
        _ => FailureCode::NodeFailure,
    };
    conclude_as(draft, code, why, now)
}

/// Ends a job with a failure and no other result.
fn conclude_as(
    draft: &mut JobDraft,
    code: FailureCode,
    why: impl Into<String>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let outcome =
        Outcome::new(&JobOutcome::of_failure(code, why)).map_err(|error| unreadable(error.into()))?;
    draft.conclude(&outcome, Some(code), now)
}
