//! Accepting jobs.

use super::Jobs;
use super::error::SubmitError;
use super::record::{JobRecord, columns};
use crate::database::{self, DatabaseError, Kind, Sql, Transaction, Value, unreadable, values};
use crate::digest::sha256;
use crate::trust::{RECORD_FIRST, columns_of};
use belljar_contract::trust::TrustEvent;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::event::Happening;
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;

/// A job that somebody wants to be carried out.
#[derive(Debug, Clone)]
pub struct Submission {
    /// What is to be done.
    pub assignment: Assignment,
    /// The same, with what was looked up for it; that is what will be carried out. It is the same job all the same.
    pub resolved: Option<Assignment>,
    /// What the client calls its request, so that it may send it again.
    pub idempotency_key: Option<String>,
    /// As many jobs may wait.
    pub most_waiting: u64,
    /// Where its status and its result are sent to, and the instance that sees to that.
    pub callback: Option<(String, String)>,
    /// The event by which the agent is hired with its first job, if nothing is recorded of it yet.
    pub hired: Option<TrustEvent>,
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

/// A task's next turn is the one after its last, or after the one that is on. Two who ask for it at once get two.
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

/// Nothing is returned when somebody else was first.
macro_rules! add {
    ($turn:literal) => {
        concat!(
            "INSERT INTO jobs (job_id, job_key, task_id, idempotency_key, assignment, assignment_sha256, state, attempt, \
             max_attempts, fence, cancel_requested, events, accepted_at_ms, turn) \
             SELECT $1, $2, $3, $4, $5, $6, 'accepted', 0, $7, 0, 0, 1, $8, ",
            $turn,
            " ON CONFLICT DO NOTHING RETURNING ",
            columns!()
        )
    };
}

/// SQLite would look each up by its state, and then for its owner.
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

const ADD: &str = add!("$9 WHERE TRUE");

const ADD_EVENT: &str =
    "INSERT INTO job_events (job, id, at_ms, kind, event) VALUES ($1, 1, $2, 'status', $3)";

const ADD_CALLBACK: &str = "INSERT INTO callbacks (job, url, told, attempts, owner, state) \
    VALUES ($1, $2, 0, 0, $3, 'pending')";

/// All of that by one statement, where each is a round trip; for a job that is new. For any other it returns nothing, and has
/// done nothing but, if two are the first at once, take a turn too many.
const ADD_AT_ONCE: &str = concat!(
    "WITH next AS (",
    next_turn!("$9", "WHERE NOT EXISTS (SELECT FROM jobs WHERE job_key = $2 OR idempotency_key = $4)"),
    "), job AS (",
    add!("turn FROM next"),
    "), event AS (INSERT INTO job_events (job, id, at_ms, kind, event) SELECT number, 1, $8, 'status', $10 FROM job), \
     callback AS (INSERT INTO callbacks (job, url, told, attempts, owner, state) \
     SELECT number, $11, 0, 0, $12, 'pending' FROM job WHERE $11::TEXT IS NOT NULL) SELECT * FROM job"
);

// === impl Jobs ===

impl Jobs {
    /// Accepts a job. When this is back, the job is on the disk. A client that hangs up must not leave in doubt what becomes of
    /// this: whoever calls it carries it out to its end.
    ///
    /// # Errors
    /// [`SubmitError`]; the job was not accepted, unless the database says that it is in doubt: to submit it again tells.
    pub async fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        let job = Row::of(&submission)?;
        let has_room = self.room.take();
        // On a file it would save nothing.
        if has_room && submission.hired.is_none() && self.database.kind() == Kind::Postgres {
            let values = job.at_once(&submission);
            if let Some(added) = self.database.write_returning(WRITE, ADD_AT_ONCE, values).await? {
                return Ok(Submitted::New(JobRecord::read(&added)?));
            }
        }
        self.submit_by_steps(&submission, job, has_room).await
    }

    /// The same one after the other, which tells why a job is not accepted.
    async fn submit_by_steps(
        &self,
        submission: &Submission,
        job: Row,
        has_room: bool,
    ) -> Result<Submitted, SubmitError> {
        let mut transaction = self.database.begin().await?;
        if let Some(known) = known(&mut transaction, submission, &job.sha256).await? {
            return Ok(Submitted::Known(known));
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
            return known.map(Submitted::Known).ok_or_else(|| vanished().into());
        };
        let added = JobRecord::read(&added)?;
        let event = values![added.number, submission.now.as_millisecond(), job.event];
        transaction.execute(ADD_EVENT, event).await?;
        if let Some((url, instance)) = &submission.callback {
            let values = values![added.number, url.as_str(), instance.as_str()];
            transaction.execute(ADD_CALLBACK, values).await?;
        }
        // An agent is hired by a job that is accepted, and by no other.
        if let Some(event) = &submission.hired {
            transaction.execute(RECORD_FIRST, columns_of(event)?).await?;
        }
        transaction.commit(WRITE).await?;
        Ok(Submitted::New(added))
    }
}

/// What a submission looks like in the database.
struct Row {
    text: String,
    sha256: String,
    event: String,
}

/// What both ways are called.
const WRITE: &str = "submit";

// === impl Row ===

impl Row {
    fn of(submission: &Submission) -> Result<Self, DatabaseError> {
        let written = |assignment: &Assignment| {
            serde_json::to_string(assignment).map_err(|error| unreadable(error.into()))
        };
        let asked = written(&submission.assignment)?;
        let text = submission.resolved.as_ref().map(written).transpose()?.unwrap_or_else(|| asked.clone());
        // What can't be read back must not be accepted.
        super::record::assignment(&text)?;
        let status = Happening::Status { status: JobState::Accepted, attempt: 0, failure_code: None };
        let event = serde_json::to_string(&status).map_err(|error| unreadable(error.into()))?;
        // However its ids are written, it is the same job.
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

fn check_same(row: &database::Row, submission: &Submission, sha256: &str) -> Result<(), SubmitError> {
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
