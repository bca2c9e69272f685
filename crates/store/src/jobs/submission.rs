//! Accepting jobs.

use super::Jobs;
use super::error::SubmitError;
use super::record::{JobRecord, columns};
use crate::database::{self, DatabaseError, EngineKind, Sql, Transaction, Value, unreadable, values};
use crate::digest::sha256;
use crate::trust::{RECORD_FIRST, columns_of};
use belljar_contract::trust::TrustEvent;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::event::JobEventKind;
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;

/// A job that a client submits.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Assignment as submitted.
    pub assignment: Assignment,
    /// Assignment with resolved references; this one is carried out. The job's identity is that of the submitted
    /// assignment.
    pub resolved: Option<Assignment>,
    /// Idempotency key of the request, so that the client may retry it.
    pub idempotency_key: Option<String>,
    /// Maximum number of waiting jobs.
    pub most_waiting: u64,
    /// URL that status and result are sent to, and the instance that delivers them.
    pub callback: Option<(String, String)>,
    /// Event that hires the agent with its first job, if it has no events yet.
    pub hired: Option<TrustEvent>,
    /// Time of the request.
    pub now: Timestamp,
}

/// A job that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum AcceptedJob {
    /// The job was accepted now.
    New(JobRecord),
    /// The job was already submitted before.
    Known(JobRecord),
}

/// SQL for a task's next turn: the one after its last, or after the present one. Two concurrent requests get two turns.
macro_rules! next_turn {
    ($task:literal, $where:literal) => {
        concat!(
            "INSERT INTO turns (task_id, turn) SELECT ",
            $task,
            ", 1 + coalesce((SELECT turn FROM turns WHERE task_id = ''), 0) ",
            $where,
            " ON CONFLICT (task_id) DO UPDATE SET turn = \
             CASE WHEN turns.turn >= excluded.turn THEN turns.turn + 1 ELSE excluded.turn END RETURNING turn"
        )
    };
}

/// Inserts a job. Returns no row if a concurrent request was first.
macro_rules! add {
    ($turn:literal) => {
        concat!(
            "INSERT INTO jobs (job_id, job_key, task_id, project_id, idempotency_key, assignment, assignment_sha256, state, attempt, \
             max_attempts, fence, cancel_requested, events, accepted_at_ms, turn) \
             SELECT $1, $2, $3, $4, $5, $6, $7, 'accepted', 0, $8, 0, 0, 1, $9, ",
            $turn,
            " ON CONFLICT DO NOTHING RETURNING ",
            columns!()
        )
    };
}

/// Counts waiting jobs. SQLite would look each up by its state, and then for its owner, without the given index.
const WAITING: Sql = Sql::of_each(
    "SELECT count(*) AS waiting FROM jobs INDEXED BY jobs_waiting WHERE state = 'accepted' AND owner IS NULL",
    "SELECT count(*) AS waiting FROM jobs WHERE state = 'accepted' AND owner IS NULL",
);

const KNOWN: &str = concat!(
    "SELECT assignment_sha256, idempotency_key, job_key, ",
    columns!(),
    " FROM jobs WHERE job_key = $1 OR idempotency_key = $2"
);

/// SQLite reads `ON` as the beginning of a join's condition unless something stands before it.
const TURN: &str = next_turn!("$1", "WHERE TRUE");

const ADD: &str = add!("$10 WHERE TRUE");

const ADD_EVENT: &str =
    "INSERT INTO job_events (job, id, at_ms, kind, event) VALUES ($1, 1, $2, 'status', $3)";

const ADD_CALLBACK: &str = "INSERT INTO callbacks (job, url, told, attempts, owner, state) \
    VALUES ($1, $2, 0, 0, $3, 'pending')";

/// Accepts a new job with one statement, which saves round trips. For any other job it returns no row and changes
/// nothing; only if two concurrent requests are the first, it uses up one turn too many.
const ADD_AT_ONCE: &str = concat!(
    "WITH next AS (",
    next_turn!("$10", "WHERE NOT EXISTS (SELECT FROM jobs WHERE job_key = $2 OR idempotency_key = $5)"),
    "), job AS (",
    add!("turn FROM next"),
    "), event AS (INSERT INTO job_events (job, id, at_ms, kind, event) SELECT number, 1, $9, 'status', $11 FROM job), \
     callback AS (INSERT INTO callbacks (job, url, told, attempts, owner, state) \
     SELECT number, $12, 0, 0, $13, 'pending' FROM job WHERE $12::TEXT IS NOT NULL) SELECT * FROM job"
);

// === impl Jobs ===

impl Jobs {
    /// Accepts a job. The job is on disk when this returns. The caller must run this future to its end, even if the
    /// client disconnects: otherwise the outcome is in doubt.
    ///
    /// # Errors
    /// [`SubmitError`]; the job was not accepted, unless the database reports that the outcome is in doubt: submitting
    /// it again resolves that.
    pub async fn submit(&self, submission: Submission) -> Result<AcceptedJob, SubmitError> {
        let job = SubmissionRow::of(&submission)?;
        let has_room = self.room.take();
        // With SQLite there are no round trips to save.
        if has_room && submission.hired.is_none() && self.database.kind() == EngineKind::Postgres {
            let values = job.at_once(&submission);
            if let Some(added) = self.database.write_returning(WRITE, ADD_AT_ONCE, values).await? {
                return Ok(AcceptedJob::New(JobRecord::read(&added)?));
            }
        }
        self.submit_by_steps(&submission, job, has_room).await
    }

    /// Accepts a job step by step, which determines the reason why a job is not accepted.
    async fn submit_by_steps(
        &self,
        submission: &Submission,
        job: SubmissionRow,
        has_room: bool,
    ) -> Result<AcceptedJob, SubmitError> {
        let mut transaction = self.database.begin().await?;
        if let Some(known) = known(&mut transaction, submission, &job.sha256).await? {
            return Ok(AcceptedJob::Known(known));
        }
        if !has_room {
            let waiting = transaction.fetch(WAITING, values![]).await?;
            let waiting = waiting.first().map_or(Ok(0), |row| row.count("waiting"))?;
            self.room.counted(waiting, submission.most_waiting);
            if waiting >= submission.most_waiting {
                return Err(SubmitError::Full { waiting });
            }
        }
        let turn = transaction.fetch(TURN, values![submission.assignment.task_id.key()]).await?;
        let turn = turn.first().map_or(Ok(0), |row| row.integer("turn"))?;
        let mut columns = job.columns(submission);
        columns.push(turn.into());
        let Some(added) = transaction.fetch(ADD, columns).await?.into_iter().next() else {
            let known = known(&mut transaction, submission, &job.sha256).await?;
            return known.map(AcceptedJob::Known).ok_or_else(|| vanished().into());
        };
        let added = JobRecord::read(&added)?;
        let event = values![added.number, submission.now.as_millisecond(), job.event];
        transaction.execute(ADD_EVENT, event).await?;
        if let Some((url, instance)) = &submission.callback {
            let values = values![added.number, url.as_str(), instance.as_str()];
            transaction.execute(ADD_CALLBACK, values).await?;
        }
        // Only an accepted job hires its agent.
        if let Some(event) = &submission.hired {
            transaction.execute(RECORD_FIRST, columns_of(event)?).await?;
        }
        transaction.commit(WRITE).await?;
        Ok(AcceptedJob::New(added))
    }
}

/// Column values of a submission.
struct SubmissionRow {
    text: String,
    sha256: String,
    event: String,
}

/// Name of the write, for both variants.
const WRITE: &str = "submit";

// === impl SubmissionRow ===

impl SubmissionRow {
    fn of(submission: &Submission) -> Result<Self, DatabaseError> {
        let written = |assignment: &Assignment| {
            serde_json::to_string(assignment).map_err(|error| unreadable(error.into()))
        };
        let asked = written(&submission.assignment)?;
        let text = submission.resolved.as_ref().map(written).transpose()?.unwrap_or_else(|| asked.clone());
        // An assignment that can't be read back must not be accepted.
        super::record::assignment(&text)?;
        let status = JobEventKind::Status { status: JobState::Accepted, attempt: 0, failure_code: None };
        let event = serde_json::to_string(&status).map_err(|error| unreadable(error.into()))?;
        // The identity of a job doesn't depend on the case of its ids.
        let canonical = submission.assignment.with_canonical_ids().as_ref().map(written).transpose()?;
        let sha256 = sha256(canonical.as_ref().unwrap_or(&asked).as_bytes());
        Ok(Self { text, sha256, event })
    }

    fn columns(&self, submission: &Submission) -> Vec<Value> {
        let Submission { assignment, idempotency_key, now, .. } = submission;
        values![
            assignment.job_id.as_str(),
            assignment.job_id.key(),
            assignment.task_id.as_str(),
            assignment.project_id.as_ref().map(ToString::to_string),
            idempotency_key.clone(),
            self.text.as_str(),
            self.sha256.as_str(),
            assignment.max_attempts,
            now.as_millisecond(),
        ]
    }

    fn at_once(&self, submission: &Submission) -> Vec<Value> {
        let (url, instance) = submission.callback.clone().unzip();
        let task = submission.assignment.task_id.key();
        let mut values = self.columns(submission);
        values.extend(values![task, self.event.as_str(), url, instance]);
        values
    }
}

/// Returns the job that was submitted before with this id or key, if it is the same.
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

fn check_same(row: &database::Row, submission: &Submission, sha256: &str) -> Result<(), SubmitError> {
    let job_id = &submission.assignment.job_id;
    let is_same = row.text("assignment_sha256")? == sha256;
    match row.text("job_key")? == job_id.key() {
        // A request may be repeated with or without its key.
        true if is_same => Ok(()),
        true => Err(SubmitError::OtherJob { job_id: job_id.clone() }),
        false => Err(SubmitError::OtherRequest),
    }
}

fn vanished() -> DatabaseError {
    unreadable("a job that was in the way is gone".into())
}
