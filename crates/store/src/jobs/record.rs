//! Rows of jobs.

use super::error::ChangeError;
use crate::database::{Database, DatabaseError, Row, Sql, Transaction, unreadable, values};
use crate::digest::sha256;
use belljar_contract::id::{JobId, ProjectId, RunId, TaskId};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::{JobOutcome, JobSummary};
use belljar_contract::worker::state::JobState;
use belljar_policy::lifecycle::{Fence, JobLifecycle};
use jiff::Timestamp;
use std::time::Duration;

/// A job without its assignment and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// Its number in the order of acceptance.
    pub number: u64,
    /// Its id, as it was submitted.
    pub job_id: JobId,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The project that the task belongs to.
    pub project_id: Option<ProjectId>,
    /// State of the job.
    pub life: JobLifecycle,
    /// Grace period for a job whose cancellation is requested.
    pub grace: Duration,
    /// The instance that carries it out.
    pub owner: Option<String>,
    /// Number of its events.
    pub events: u64,
    /// The run that is, or was, the last attempt.
    pub run_id: Option<RunId>,
    /// Time of acceptance.
    pub accepted_at: Timestamp,
    /// Start of the last attempt.
    pub started_at: Option<Timestamp>,
    /// End of the job.
    pub ended_at: Option<Timestamp>,
    /// Time at which it is ended if it still runs.
    pub deadline: Option<Timestamp>,
    /// The SHA-256 of its outcome as it is kept.
    pub outcome_sha256: Option<String>,
    /// Time at which a client acknowledged the result.
    pub acknowledged_at: Option<Timestamp>,
    pub(super) turn: i64,
}

/// Outcome of a job, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub(super) text: String,
    pub(super) sha256: String,
}

/// The columns of [`JobRecord`].
macro_rules! columns {
    () => {
        "number, job_id, task_id, project_id, state, attempt, max_attempts, owner, fence, cancel_requested, grace_ms, turn, events, run_id, \
         accepted_at_ms, started_at_ms, ended_at_ms, deadline_ms, outcome_sha256, acknowledged_at_ms"
    };
}
pub(super) use columns;

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM jobs WHERE job_key = $1");

const LOCKED_BY_ID: Sql =
    Sql::of_each(BY_ID, concat!("SELECT ", columns!(), " FROM jobs WHERE job_key = $1 FOR UPDATE"));

const DOCUMENTS: &str = "SELECT assignment, outcome FROM jobs WHERE number = $1";

// === impl JobRecord ===

impl JobRecord {
    pub(super) fn read(row: &Row) -> Result<Self, DatabaseError> {
        let state = row.text("state")?;
        let life = JobLifecycle {
            state: JobState::from_name(&state)
                .ok_or_else(|| unreadable(format!("the state {state:?}").into()))?,
            attempt: row.small("attempt")?,
            max_attempts: row.small("max_attempts")?,
            is_owned: row.optional_text("owner")?.is_some(),
            fence: Fence(row.count("fence")?),
            cancel_requested: row.integer("cancel_requested")? != 0,
        };
        let run_id = row.optional_text("run_id")?.map(RunId::try_from).transpose();
        Ok(Self {
            number: row.count("number")?,
            job_id: JobId::try_from(row.text("job_id")?).map_err(|error| unreadable(error.into()))?,
            task_id: TaskId::try_from(row.text("task_id")?).map_err(|error| unreadable(error.into()))?,
            project_id: row.optionally_parsed("project_id", ProjectId::parse)?,
            life,
            grace: Duration::from_millis(
                row.optional_integer("grace_ms")?.unwrap_or_default().unsigned_abs(),
            ),
            owner: row.optional_text("owner")?,
            events: row.count("events")?,
            run_id: run_id.map_err(|error| unreadable(error.into()))?,
            accepted_at: row.time("accepted_at_ms")?,
            started_at: row.optional_time("started_at_ms")?,
            ended_at: row.optional_time("ended_at_ms")?,
            deadline: row.optional_time("deadline_ms")?,
            outcome_sha256: row.optional_text("outcome_sha256")?,
            acknowledged_at: row.optional_time("acknowledged_at_ms")?,
            turn: row.integer("turn")?,
        })
    }

    /// Locks the job with that id. No other transaction changes it until this one is over.
    pub(super) async fn lock(transaction: &mut Transaction, job_id: &JobId) -> Result<Self, ChangeError> {
        let rows = transaction.fetch(LOCKED_BY_ID, values![job_id.key()]).await?;
        let row = rows.first().ok_or_else(|| ChangeError::Unknown { job_id: job_id.clone() })?;
        Ok(Self::read(row)?)
    }

    /// The job of that id.
    pub(super) async fn find(database: &Database, job_id: &JobId) -> Result<Option<Self>, DatabaseError> {
        database.fetch(BY_ID, values![job_id.key()]).await?.first().map(Self::read).transpose()
    }

    /// Returns the job's assignment and outcome.
    pub(super) async fn documents(
        &self,
        database: &Database,
    ) -> Result<(Assignment, Option<JobOutcome>), DatabaseError> {
        let rows = database.fetch(DOCUMENTS, values![self.number]).await?;
        let row = rows.first().ok_or_else(|| unreadable("the row is gone".into()))?;
        let outcome = row.optional_text("outcome")?.map(|text| serde_json::from_str(&text)).transpose();
        Ok((assignment(&row.text("assignment")?)?, outcome.map_err(|error| unreadable(error.into()))?))
    }

    /// Returns the summary that the Worker API reports.
    pub fn summary(&self) -> JobSummary {
        JobSummary {
            task_id: self.task_id.clone(),
            job_id: self.job_id.clone(),
            project_id: self.project_id.clone(),
            status: self.life.state,
            attempt: self.life.attempt,
            max_attempts: self.life.max_attempts,
            run_id: self.run_id.clone(),
            accepted_at: self.accepted_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            deadline: self.deadline,
            cancel_requested: self.life.cancel_requested,
            outcome_sha256: self.outcome_sha256.clone(),
            acknowledged_at: self.acknowledged_at,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Serialises an outcome.
    ///
    /// # Errors
    /// The outcome can't be serialised, which is a fault of this program.
    pub fn new(outcome: &JobOutcome) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_string(outcome)?;
        let sha256 = sha256(text.as_bytes());
        Ok(Self { text, sha256 })
    }

    /// Its SHA-256, in lower-case hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

pub(super) fn assignment(text: &str) -> Result<Assignment, DatabaseError> {
    Assignment::parse(text.as_bytes()).map_err(|problems| unreadable(problems.into()))
}
