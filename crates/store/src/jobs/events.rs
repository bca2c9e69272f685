//! What happens to jobs, in the order in which it did.

use super::Jobs;
use super::error::ChangeError;
use super::record::{JobRecord, time};
use crate::database::{DatabaseError, Row, Transaction, unreadable, values};
use belljar_contract::id::{JobId, RunId};
use belljar_contract::worker::event::{Happening, JobEvent};
use belljar_policy::lifecycle::{Change, Fence, Input, Refused};
use jiff::Timestamp;

/// What the owner of a job tells of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// That the runner works on it. To say so once more changes nothing.
    pub started: Option<Started>,
    /// What has happened since, in that order.
    pub happenings: Vec<(Timestamp, Happening)>,
}

/// The runner works on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// In which run.
    pub run_id: RunId,
    /// Since when.
    pub at: Timestamp,
    /// When it will be ended, if it goes on for so long.
    pub deadline: Timestamp,
}

const INSERT: &str = "INSERT INTO job_events (job, id, at_ms, kind, event) VALUES ($1, $2, $3, $4, $5)";

const AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND id > $2 ORDER BY id LIMIT $3";

const PRINTED_AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND kind = 'log' AND id > $2 ORDER BY id LIMIT $3";

const STATES_AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND kind = 'status' AND id > $2 ORDER BY id";

fn read(row: &Row) -> Result<JobEvent, DatabaseError> {
    let happening = serde_json::from_str(&row.text("event")?).map_err(|error| unreadable(error.into()))?;
    Ok(JobEvent { id: row.count("id")?, at: time(row.integer("at_ms")?)?, happening })
}

// === impl Jobs ===

impl Jobs {
    /// Records what the owner of a job tells of it.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job, or it isn't theirs any more.
    pub async fn tell(&self, job_id: &JobId, fence: Fence, told: Told) -> Result<(), ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut transaction = jobs.database.begin().await?;
            let mut job = JobRecord::lock(&mut transaction, &job_id).await?;
            told.record(&mut transaction, &mut job, fence).await?;
            job.save(&mut transaction).await?;
            Ok(transaction.commit("tell").await?)
        })
        .await
    }

    /// A job's events after the one with that id, at most so many.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn events_after(
        &self,
        job_id: &JobId,
        id: u64,
        most: u32,
    ) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(AFTER, values![job_id.key(), id, most]).await?;
        rows.iter().map(read).collect()
    }

    /// The same of those alone that tell of what a job has printed.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn printed_after(
        &self,
        job_id: &JobId,
        id: u64,
        most: u32,
    ) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(PRINTED_AFTER, values![job_id.key(), id, most]).await?;
        rows.iter().map(read).collect()
    }

    /// The same of those alone that tell of a job's state.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn states_after(&self, job_id: &JobId, id: u64) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(STATES_AFTER, values![job_id.key(), id]).await?;
        rows.iter().map(read).collect()
    }
}

// === impl Told ===

impl Told {
    /// The record itself is saved by the caller.
    pub(super) async fn record(
        self,
        transaction: &mut Transaction,
        job: &mut JobRecord,
        fence: Fence,
    ) -> Result<(), ChangeError> {
        if let Some(Started { run_id, at, deadline }) = self.started
            && job.life.apply(Input::Start(fence))? == Change::Changed
        {
            (job.run_id, job.started_at, job.deadline) = (Some(run_id), Some(at), Some(deadline));
            let (status, attempt) = (job.life.state, job.life.attempt);
            let begun = Happening::Status { status, attempt, failure_code: None };
            add(transaction, job, at, &begun).await?;
        }
        if job.life.fence != fence || !job.life.is_owned {
            return Err(Refused::Fenced.into());
        }
        for (at, happening) in &self.happenings {
            if let Happening::Extension { granted: true, deadline, .. } = happening {
                job.deadline = Some(*deadline);
            }
            add(transaction, job, *at, happening).await?;
        }
        Ok(())
    }
}

/// Adds an event. The record itself is saved by the caller.
pub(super) async fn add(
    transaction: &mut Transaction,
    job: &mut JobRecord,
    at: Timestamp,
    happening: &Happening,
) -> Result<(), DatabaseError> {
    job.events += 1;
    insert(transaction, job, job.events, at, happening).await
}

pub(super) async fn insert(
    transaction: &mut Transaction,
    job: &JobRecord,
    id: u64,
    at: Timestamp,
    happening: &Happening,
) -> Result<(), DatabaseError> {
    let text = serde_json::to_string(happening).map_err(|error| unreadable(error.into()))?;
    transaction
        .execute(INSERT, values![job.number, id, at.as_millisecond(), happening.kind(), text])
        .await
        .map(drop)
}
