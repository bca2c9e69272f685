//! Drafts of job changes: a job's row is locked, its changes are gathered, and all of them are written together or not
//! at all.

use super::error::ChangeError;
use super::record::{JobRecord, Outcome};
use crate::database::{Database, DatabaseError, Sql, Transaction, Value, unreadable, values};
use crate::tokens;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::JobEventKind;
use jiff::Timestamp;
use serde::Serialize;

/// A locked job with gathered changes. No other transaction changes the job until this is written or dropped; dropping
/// discards the changes.
#[derive(Debug)]
pub(super) struct JobDraft {
    transaction: Transaction,
    pub(super) job: JobRecord,
    happened: Vec<EventEntry>,
    outcome: Option<String>,
    /// Time from which on no agent acts for the job.
    released_at: Option<Timestamp>,
}

/// An event as it is kept.
#[derive(Debug, Serialize)]
struct EventEntry {
    id: u64,
    at_ms: i64,
    kind: &'static str,
    event: String,
}

const SAVE: &str = "UPDATE jobs SET state = $2, attempt = $3, owner = $4, fence = $5, cancel_requested = $6, events = $7, \
    run_id = $8, started_at_ms = $9, ended_at_ms = $10, deadline_ms = $11, outcome_sha256 = $12, acknowledged_at_ms = $13, \
    outcome = coalesce($14, outcome), grace_ms = $15 WHERE number = $1";

/// Adds all events with one statement, because each statement is a round trip to a server.
const ADD_EVENTS: Sql = Sql::of_each(
    "INSERT INTO job_events (job, id, at_ms, kind, event) \
     SELECT $1, value ->> 'id', value ->> 'at_ms', value ->> 'kind', value ->> 'event' FROM json_each($2)",
    "INSERT INTO job_events (job, id, at_ms, kind, event) SELECT $1, id, at_ms, kind, event \
     FROM json_to_recordset($2::json) AS happened (id BIGINT, at_ms BIGINT, kind TEXT, event TEXT)",
);

// === impl JobDraft ===

impl JobDraft {
    /// Begins to change the job of that id.
    pub(super) async fn of(database: &Database, job_id: &JobId) -> Result<Self, ChangeError> {
        let mut transaction = database.begin().await?;
        let job = JobRecord::lock(&mut transaction, job_id).await?;
        Ok(Self::within(transaction, job))
    }

    /// Begins to change a job that is locked already.
    pub(super) fn within(transaction: Transaction, job: JobRecord) -> Self {
        Self { transaction, job, happened: Vec::new(), outcome: None, released_at: None }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, at: Timestamp, happening: &JobEventKind) -> Result<(), DatabaseError> {
        self.job.events += 1;
        let event = serde_json::to_string(happening).map_err(|error| unreadable(error.into()))?;
        let (id, at_ms, kind) = (self.job.events, at.as_millisecond(), happening.kind());
        self.happened.push(EventEntry { id, at_ms, kind, event });
        Ok(())
    }

    /// Adds an event for the job's new state.
    pub(super) fn add_status(
        &mut self,
        at: Timestamp,
        failure_code: Option<FailureCode>,
    ) -> Result<(), DatabaseError> {
        let (status, attempt) = (self.job.life.state, self.job.life.attempt);
        self.add(at, &JobEventKind::Status { status, attempt, failure_code })
    }

    /// Releases the job from its owner, and revokes the tokens that were issued for it.
    pub(super) fn release(&mut self, now: Timestamp) {
        (self.job.owner, self.job.deadline) = (None, None);
        self.released_at = Some(now);
    }

    /// Ends the job in the state that its life is in: releases it and stores the outcome.
    pub(super) fn conclude(
        &mut self,
        outcome: &Outcome,
        failure_code: Option<FailureCode>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.release(now);
        self.job.ended_at = Some(now);
        self.job.outcome_sha256 = Some(outcome.sha256.clone());
        self.outcome = Some(outcome.text.clone());
        self.add_status(now, failure_code)
    }

    /// Executes another statement in the same transaction.
    pub(super) async fn also(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<(), DatabaseError> {
        self.transaction.execute(sql, values).await.map(drop)
    }

    /// Writes all of it. It is on disk when this returns without an error.
    pub(super) async fn write(self, name: &'static str) -> Result<JobRecord, DatabaseError> {
        let Self { mut transaction, job, happened, outcome, released_at } = self;
        let values = values![
            job.number,
            job.life.state.as_str(),
            job.life.attempt,
            job.owner.clone(),
            job.life.fence.0,
            job.life.cancel_requested,
            job.events,
            job.run_id.as_ref().map(ToString::to_string),
            job.started_at.map(Timestamp::as_millisecond),
            job.ended_at.map(Timestamp::as_millisecond),
            job.deadline.map(Timestamp::as_millisecond),
            job.outcome_sha256.clone(),
            job.acknowledged_at.map(Timestamp::as_millisecond),
            outcome,
            i64::try_from(job.grace.as_millis()).unwrap_or(i64::MAX),
        ];
        transaction.execute(SAVE, values).await?;
        if !happened.is_empty() {
            let happened = serde_json::to_string(&happened).map_err(|error| unreadable(error.into()))?;
            transaction.execute(ADD_EVENTS, values![job.number, happened]).await?;
        }
        if let Some(released_at) = released_at {
            tokens::revoke_within(&mut transaction, &job.job_id, released_at).await?;
        }
        transaction.commit(name).await?;
        Ok(job)
    }
}
