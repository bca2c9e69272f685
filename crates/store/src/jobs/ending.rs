//! How jobs end: by their owner, by somebody who cancels them, or because their owner is gone.

use super::error::ChangeError;
use super::events::Told;
use super::record::{JobRecord, Outcome};
use super::{Jobs, events};
use crate::database::{DatabaseError, Transaction, unreadable, values};
use belljar_contract::failure::FailureCode;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::Happening;
use belljar_contract::worker::job::JobOutcome;
use belljar_contract::worker::state::JobState;
use belljar_policy::lifecycle::{Change, Ending, Fence, Input};
use jiff::Timestamp;

/// How a job has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What its owner has not told before.
    pub untold: Told,
    /// How.
    pub ending: Ending,
    /// What came of it.
    pub outcome: JobOutcome,
}

/// The end of a job is on the disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Since just now.
    Now(JobRecord),
    /// It was already.
    Before(JobRecord),
}

/// Why an owner leaves a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It died, or was stopped, and nobody knows how far the job was.
    Gone,
    /// It has not begun with it.
    Unbegun,
}

const ADD_ARTIFACT: &str =
    "INSERT INTO artifacts (job, place, path, sha256, size_bytes) VALUES ($1, $2, $3, $4, $5)";

const CANCELED: &str = "the job was canceled before it began";
const CANCELED_AND_LEFT: &str = "the job was canceled, and its node was gone before it had ended it";
const GONE: &str = "the node died or was stopped under the job, and it may not be begun again";

// === impl Jobs ===

impl Jobs {
    /// Records that a job is over, by its owner, and before that what they have not told yet. To record the same once more
    /// changes nothing.
    ///
    /// # Errors
    /// [`ChangeError`] when it isn't theirs any more, or has ended otherwise.
    pub async fn end(
        &self,
        job_id: &JobId,
        fence: Fence,
        Report { untold, ending, outcome }: Report,
        now: Timestamp,
    ) -> Result<Ended, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let written = Outcome::new(&outcome).map_err(|error| unreadable(error.into()))?;
            let mut transaction = jobs.database.begin().await?;
            let mut job = JobRecord::lock(&mut transaction, &job_id).await?;
            if !job.life.state.is_final() {
                untold.record(&mut transaction, &mut job, fence).await?;
            }
            if job.life.apply(Input::End(fence, ending))? == Change::Unchanged {
                let is_same = job.outcome_sha256.as_deref() == Some(written.sha256());
                return if is_same { Ok(Ended::Before(job)) } else { Err(ChangeError::OtherOutcome) };
            }
            for (place, artifact) in (0_u64..).zip(&outcome.artifacts) {
                let (path, sha256) = (artifact.path.as_str(), artifact.sha256.as_str());
                let values = values![job.number, place, path, sha256, artifact.size_bytes];
                transaction.execute(ADD_ARTIFACT, values).await?;
            }
            conclude(&mut transaction, &mut job, (&written, outcome.failure_code), now).await?;
            transaction.commit("end").await?;
            Ok(Ended::Now(job))
        })
        .await
    }

    /// Asks for a job to be stopped. One that nobody has begun is over with that; any other is ended by its owner. To ask
    /// once more changes nothing, and neither does it for a job that is over.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job.
    pub async fn cancel(&self, job_id: &JobId, now: Timestamp) -> Result<JobRecord, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut transaction = jobs.database.begin().await?;
            let mut job = JobRecord::lock(&mut transaction, &job_id).await?;
            if job.life.apply(Input::Cancel)? == Change::Unchanged {
                return Ok(job);
            }
            events::add(&mut transaction, &mut job, now, &Happening::CancelRequested).await?;
            match job.life.state.is_final() {
                true => conclude_without_owner(&mut transaction, &mut job, CANCELED, now).await?,
                false => job.save(&mut transaction).await?,
            }
            transaction.commit("cancel").await?;
            Ok(job)
        })
        .await
    }

    /// Records that an owner has left a job: it waits for another, or is over.
    ///
    /// # Errors
    /// [`ChangeError`] when it isn't theirs any more.
    pub async fn leave(
        &self,
        job_id: &JobId,
        fence: Fence,
        left: Left,
        now: Timestamp,
    ) -> Result<JobRecord, ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut transaction = jobs.database.begin().await?;
            let mut job = JobRecord::lock(&mut transaction, &job_id).await?;
            job.life.apply(match left {
                Left::Gone => Input::Lose(fence),
                Left::Unbegun => Input::GiveBack(fence),
            })?;
            job.owner = None;
            if job.life.state.is_final() {
                let why = match (job.life.state, left) {
                    (JobState::Canceled, Left::Unbegun) => CANCELED,
                    (JobState::Canceled, Left::Gone) => CANCELED_AND_LEFT,
                    _ => GONE,
                };
                conclude_without_owner(&mut transaction, &mut job, why, now).await?;
            } else {
                (job.run_id, job.started_at, job.deadline) = (None, None, None);
                let status = Happening::Status {
                    status: job.life.state,
                    attempt: job.life.attempt,
                    failure_code: None,
                };
                events::add(&mut transaction, &mut job, now, &status).await?;
                job.save(&mut transaction).await?;
            }
            transaction.commit("leave").await?;
            Ok(job)
        })
        .await
    }

    /// Records that somebody has the result of a job, which is kept for them no longer.
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
            let mut transaction = jobs.database.begin().await?;
            let mut job = JobRecord::lock(&mut transaction, &job_id).await?;
            if !job.life.state.is_final() {
                return Err(ChangeError::NotOver { job_id });
            }
            if sha256.is_some() && sha256 != job.outcome_sha256 {
                return Err(ChangeError::OtherOutcome);
            }
            if job.acknowledged_at.is_none() {
                job.acknowledged_at = Some(now);
                job.save(&mut transaction).await?;
                transaction.commit("acknowledge").await?;
            }
            Ok(job)
        })
        .await
    }
}

/// Ends a job that was claimed and can't be carried out by anybody.
pub(super) async fn refuse(
    transaction: &mut Transaction,
    job: &mut JobRecord,
    why: &str,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let refused = job.life.apply(Input::End(job.life.fence, Ending::Failed));
    refused.map_err(|refused| unreadable(refused.into()))?;
    let code = FailureCode::InternalError;
    let outcome = JobOutcome::of_failure(code, format!("the node can't read what it accepted: {why}"));
    let outcome = Outcome::new(&outcome).map_err(|error| unreadable(error.into()))?;
    conclude(transaction, job, (&outcome, Some(code)), now).await
}

async fn conclude_without_owner(
    transaction: &mut Transaction,
    job: &mut JobRecord,
    why: &str,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let code = match job.life.state {
        JobState::Canceled => FailureCode::Canceled,
        _ => FailureCode::NodeFailure,
    };
    let outcome =
        Outcome::new(&JobOutcome::of_failure(code, why)).map_err(|error| unreadable(error.into()))?;
    conclude(transaction, job, (&outcome, Some(code)), now).await
}

async fn conclude(
    transaction: &mut Transaction,
    job: &mut JobRecord,
    (outcome, failure_code): (&Outcome, Option<FailureCode>),
    now: Timestamp,
) -> Result<(), DatabaseError> {
    job.conclude(transaction, outcome, now).await?;
    let status = Happening::Status { status: job.life.state, attempt: job.life.attempt, failure_code };
    events::add(transaction, job, now, &status).await?;
    job.save(transaction).await
}
