//! Retention of jobs: a result is kept until its client acknowledges it, and for some time after that.

use super::Jobs;
use crate::database::{DatabaseError, values};
use belljar_contract::id::JobId;
use jiff::Timestamp;

/// Times before which jobs are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Jobs whose result was acknowledged before this time.
    pub acknowledged_before: Timestamp,
    /// Jobs that ended before this time, although no client acknowledged the result.
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
    /// Deletes some jobs whose retention is over; returns their number, and 0 when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn expire(&self, retention: RetentionCutoffs) -> Result<u64, DatabaseError> {
        let RetentionCutoffs { acknowledged_before, ended_before } = retention;
        let values = values![acknowledged_before.as_millisecond(), ended_before.as_millisecond(), MOST];
        self.write("expire", EXPIRED, values).await
    }

    /// Returns true if a stored job or a task refers to that content.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn is_referenced(&self, sha256: &str) -> Result<bool, DatabaseError> {
        Ok(!self.database.fetch(REFERENCED, values![sha256]).await?.is_empty())
    }

    /// Returns the size of a file with that content which the job has left; `None` if it has left none.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn artifact_size(&self, job_id: &JobId, sha256: &str) -> Result<Option<u64>, DatabaseError> {
        let rows = self.database.fetch(ARTIFACT, values![job_id.key(), sha256]).await?;
        rows.first().map(|row| row.count("size_bytes")).transpose()
    }
}
