//! Errors of recording jobs and their changes.

use crate::database::{DatabaseError, FailureKind};
use belljar_contract::id::JobId;
use belljar_policy::lifecycle::LifecycleRefusal;

/// A job was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Another job has that id.
    #[error("there is another job with the id {job_id}")]
    OtherJob {
        /// The id.
        job_id: JobId,
    },
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    OtherRequest,
    /// The maximum number of jobs waits already.
    #[error("{waiting} jobs wait already")]
    Full {
        /// Number of waiting jobs.
        waiting: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// No job was claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Other instances consider this instance dead, and it has lost its jobs.
    #[error("the instance {instance} was given up")]
    GivenUp {
        /// The instance.
        instance: String,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// A job was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such job.
    #[error("there is no job {job_id}")]
    Unknown {
        /// Its id.
        job_id: JobId,
    },
    /// The job's state doesn't allow the change.
    #[error(transparent)]
    Refused(#[from] LifecycleRefusal),
    /// The job isn't over.
    #[error("the job {job_id} is not over")]
    NotOver {
        /// Its id.
        job_id: JobId,
    },
    /// The job has ended with another outcome than the one that is reported now.
    #[error("the job has ended with another outcome")]
    OtherOutcome,
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

// === impl ChangeError ===

impl ChangeError {
    /// Returns true if a retry may succeed, or may tell whether the change was made.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.kind != FailureKind::Refused)
    }
}
