//! Callbacks: progress of status deliveries to clients that don't poll, so that deliveries go on after a crash.
//!
//! The events that carry a job's state are delivered in order. The receiver acknowledges each event; acknowledging the
//! last one acknowledges the result.

use super::Jobs;
use crate::database::{DatabaseError, Row, unreadable, values};
use belljar_contract::id::JobId;
use jiff::Timestamp;

/// A callback for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// The job.
    pub job_id: JobId,
    /// URL that events are sent to.
    pub url: String,
    /// Last event that the receiver has acknowledged.
    pub told: u64,
}

/// Answer of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// The receiver has accepted the event.
    Event,
    /// The receiver has accepted the last event, and with it the result.
    Result,
    /// The receiver wants no more events.
    NoMore,
}

/// Selects a callback without an owner, or whose owner is no longer a registered instance.
const ORPHANED: &str = "SELECT job FROM callbacks WHERE state = 'pending' \
    AND (owner IS NULL OR owner NOT IN (SELECT instance FROM instances)) LIMIT 1";

const TAKE: &str = "UPDATE callbacks SET owner = $1 WHERE state = 'pending' \
    AND (owner IS NULL OR owner NOT IN (SELECT instance FROM instances)) \
    RETURNING url, told, (SELECT job_id FROM jobs WHERE number = callbacks.job) AS job_id";

const OWN: &str = "SELECT url, told, (SELECT job_id FROM jobs WHERE number = callbacks.job) AS job_id FROM callbacks \
    WHERE state = 'pending' AND owner = $1";

const TRIED: &str = "UPDATE callbacks SET attempts = attempts + 1 \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND owner = $2";

const TOLD: &str = "UPDATE callbacks SET told = $3, state = $4 \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND owner = $2 AND state = 'pending'";

const ACKNOWLEDGED: &str =
    "UPDATE jobs SET acknowledged_at_ms = $2 WHERE job_key = $1 AND acknowledged_at_ms IS NULL";

// === impl Jobs ===

impl Jobs {
    /// Assigns all callbacks without a live owner to that instance, and returns them.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be taken.
    pub async fn take_callbacks(&self, instance: &str) -> Result<Vec<Callback>, DatabaseError> {
        if self.database.fetch(ORPHANED, values![]).await?.is_empty() {
            return Ok(Vec::new());
        }
        let (database, instance) = (self.database.clone(), instance.to_owned());
        self.to_the_end(async move {
            let mut transaction = database.begin().await?;
            let rows = transaction.fetch(TAKE, values![instance]).await?;
            transaction.commit("take_callbacks").await?;
            rows.iter().map(read).collect()
        })
        .await
    }

    /// Returns the pending callbacks of an instance.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn callbacks_of(&self, instance: &str) -> Result<Vec<Callback>, DatabaseError> {
        self.database.fetch(OWN, values![instance]).await?.iter().map(read).collect()
    }

    /// Records a failed delivery attempt.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be recorded.
    pub async fn note_callback_tried(&self, job_id: &JobId, instance: &str) -> Result<(), DatabaseError> {
        self.write("callback_tried", TRIED, values![job_id.key(), instance]).await.map(drop)
    }

    /// Records what the receiver has acknowledged; returns true if the callback still belonged to this instance.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be recorded: the event will be delivered again.
    pub async fn note_callback_heard(
        &self,
        job_id: &JobId,
        instance: &str,
        (event, heard): (u64, CallbackAnswer),
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (database, key, instance) = (self.database.clone(), job_id.key(), instance.to_owned());
        self.to_the_end(async move {
            let state = match heard {
                CallbackAnswer::Event => "pending",
                CallbackAnswer::Result => "done",
                CallbackAnswer::NoMore => "refused",
            };
            let mut transaction = database.begin().await?;
            let noted = transaction.execute(TOLD, values![key.clone(), instance, event, state]).await? > 0;
            if noted && heard == CallbackAnswer::Result {
                transaction.execute(ACKNOWLEDGED, values![key, now.as_millisecond()]).await?;
            }
            transaction.commit("callback").await?;
            Ok(noted)
        })
        .await
    }
}

fn read(row: &Row) -> Result<Callback, DatabaseError> {
    let job_id = JobId::try_from(row.text("job_id")?).map_err(|error| unreadable(error.into()))?;
    Ok(Callback { job_id, url: row.text("url")?, told: row.count("told")? })
}
