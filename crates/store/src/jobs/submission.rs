//! Accepting jobs.

use super::error::SubmitError;
use super::record::{JobRecord, columns, sha256};
use super::{Jobs, events};
use crate::database::{DatabaseError, Row, Transaction, unreadable, values};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::event::Happening;
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;

/// A job that somebody wants to be carried out.
#[derive(Debug, Clone)]
pub struct Submission {
    /// What is to be done.
    pub assignment: Assignment,
    /// What the client calls its request, so that it may send it again.
    pub idempotency_key: Option<String>,
    /// As many jobs may wait.
    pub most_waiting: u64,
    /// Where its status and its result are sent to, and the instance that sees to that.
    pub callback: Option<(String, String)>,
    /// When it came.
    pub now: Timestamp,
}

/// A job that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// Just now.
    New(JobRecord),
    /// Before: the same was submitted already.
    Known(JobRecord),
}

const WAITING: &str = "SELECT count(*) AS waiting FROM jobs WHERE state = 'accepted' AND owner IS NULL";

const KNOWN: &str = concat!(
    "SELECT assignment_sha256, idempotency_key, job_key, ",
    columns!(),
    " FROM jobs WHERE job_key = $1 OR idempotency_key = $2"
);

/// A task's next turn is the one after its last, or after the one that is on. Two who ask for it at once get two.
const TURN: &str = "INSERT INTO turns (task_id, turn) \
    VALUES ($1, 1 + coalesce((SELECT turn FROM turns WHERE task_id = ''), 0)) \
    ON CONFLICT (task_id) DO UPDATE SET turn = \
    CASE WHEN turns.turn >= excluded.turn THEN turns.turn + 1 ELSE excluded.turn END \
    RETURNING turn";

/// Nothing is returned when somebody else was first.
const ADD: &str = concat!(
    "INSERT INTO jobs (job_id, job_key, task_id, idempotency_key, assignment, assignment_sha256, state, attempt, \
     max_attempts, fence, cancel_requested, turn, events, accepted_at_ms) \
     VALUES ($1, $2, $3, $4, $5, $6, 'accepted', 0, $7, 0, 0, $8, 1, $9) ON CONFLICT DO NOTHING RETURNING ",
    columns!()
);

const ADD_CALLBACK: &str = "INSERT INTO callbacks (job, url, told, attempts, owner, state) \
    VALUES ($1, $2, 0, 0, $3, 'pending')";

// === impl Jobs ===

impl Jobs {
    /// Accepts a job. When this is back, the job is on the disk.
    ///
    /// # Errors
    /// [`SubmitError`]; the job was not accepted, unless the database says that it is in doubt: to submit it again tells.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        let jobs = self.clone();
        self.to_the_end(async move { jobs.submit_now(&submission).await }).await
    }

    async fn submit_now(&self, submission: &Submission) -> Result<Submitted, SubmitError> {
        let Submission { assignment, idempotency_key, most_waiting, callback, now } = submission;
        let text = serde_json::to_string(assignment).map_err(|error| unreadable(error.into()))?;
        // What can't be read back must not be accepted.
        super::record::assignment(&text)?;
        let sha256 = sha256(text.as_bytes());
        let mut transaction = self.database.begin().await?;
        if let Some(known) = known(&mut transaction, submission, &sha256).await? {
            return Ok(Submitted::Known(known));
        }
        let waiting = transaction.fetch(WAITING, values![]).await?;
        let waiting = waiting.first().map_or(Ok(0), |row| row.count("waiting"))?;
        if waiting >= *most_waiting {
            return Err(SubmitError::Full { waiting });
        }
        let task = assignment.task_id.key();
        let turn = transaction.fetch(TURN, values![task]).await?;
        let turn = turn.first().map_or(Ok(0), |row| row.integer("turn"))?;
        let columns = values![
            assignment.job_id.as_str(),
            assignment.job_id.key(),
            assignment.task_id.as_str(),
            idempotency_key.clone(),
            text,
            sha256.clone(),
            assignment.max_attempts,
            turn,
            now.as_millisecond(),
        ];
        let Some(row) = transaction.fetch(ADD, columns).await?.into_iter().next() else {
            let known = known(&mut transaction, submission, &sha256).await?;
            return known.map(Submitted::Known).ok_or_else(|| vanished().into());
        };
        let job = JobRecord::read(&row)?;
        let status = Happening::Status { status: JobState::Accepted, attempt: 0, failure_code: None };
        events::insert(&mut transaction, &job, 1, *now, &status).await?;
        if let Some((url, instance)) = callback {
            let values = values![job.number, url.as_str(), instance.as_str()];
            transaction.execute(ADD_CALLBACK, values).await?;
        }
        transaction.commit("submit").await?;
        Ok(Submitted::New(job))
    }
}

/// The job that was submitted by this id or key before, if it is the same.
async fn known(
    transaction: &mut Transaction,
    submission: &Submission,
    sha256: &str,
) -> Result<Option<JobRecord>, SubmitError> {
    let job_id = &submission.assignment.job_id;
    let known = transaction.fetch(KNOWN, values![job_id.key(), submission.idempotency_key.clone()]).await?;
    for row in &known {
        check_same(row, submission, sha256)?;
    }
    Ok(known.first().map(JobRecord::read).transpose()?)
}

fn check_same(row: &Row, submission: &Submission, sha256: &str) -> Result<(), SubmitError> {
    let job_id = &submission.assignment.job_id;
    let is_same = row.text("assignment_sha256")? == sha256;
    match row.text("job_key")? == job_id.key() {
        // It may be sent again with a key, or without.
        true if is_same => Ok(()),
        true => Err(SubmitError::OtherJob { job_id: job_id.clone() }),
        false => Err(SubmitError::OtherRequest),
    }
}

fn vanished() -> DatabaseError {
    unreadable("a job that was in the way is gone".into())
}
