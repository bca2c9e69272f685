//! What is kept, and for how long: a result until somebody has it, and then for a while.

use super::Jobs;
use crate::database::{DatabaseError, values};
use belljar_contract::id::JobId;
use jiff::Timestamp;

/// Before which time what is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Jobs whose result was acknowledged before.
    pub acknowledged_before: Timestamp,
    /// Jobs that ended before, and whose result nobody has asked for.
    pub ended_before: Timestamp,
}

const MOST: u32 = 500;

const EXPIRED: &str = "DELETE FROM jobs WHERE number IN (\
    SELECT number FROM jobs WHERE acknowledged_at_ms < $1 OR ended_at_ms < $2 ORDER BY number LIMIT $3)";

const REFERENCED: &str = "SELECT sha256 FROM artifacts WHERE sha256 = $1 \
    UNION ALL SELECT sha256 FROM task_artifacts WHERE sha256 = $1 LIMIT 1";

const ARTIFACT: &str = "SELECT size_bytes FROM artifacts WHERE sha256 = $2 \
    AND job = (SELECT number FROM jobs WHERE job_key = $1) LIMIT 1";

// === impl Jobs ===

impl Jobs {
    /// Removes some jobs that need not be kept any longer; how many. None when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn expire(&self, retention: Retention) -> Result<u64, DatabaseError> {
        let Retention { acknowledged_before, ended_before } = retention;
        let values = values![acknowledged_before.as_millisecond(), ended_before.as_millisecond(), MOST];
        self.write("expire", EXPIRED, values).await
    }

    /// Whether a job that is kept has left a file with that content, or a task keeps one.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be looked at.
    pub async fn is_referenced(&self, sha256: &str) -> Result<bool, DatabaseError> {
        Ok(!self.database.fetch(REFERENCED, values![sha256]).await?.is_empty())
    }

    /// The size of a file with that content which the job has left; nothing if it has left none.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be looked at.
    pub async fn artifact_size(&self, job_id: &JobId, sha256: &str) -> Result<Option<u64>, DatabaseError> {
        let rows = self.database.fetch(ARTIFACT, values![job_id.key(), sha256]).await?;
        rows.first().map(|row| row.count("size_bytes")).transpose()
    }
}
