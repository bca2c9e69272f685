//! Why something of a job could not be recorded.

use crate::database::{DatabaseError, Failing};
use belljar_contract::id::JobId;
use belljar_policy::lifecycle::Refused;

/// A job was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// There is a job of that id, and it is to do something else.
    #[error("there is another job with the id {job_id}")]
    OtherJob {
        /// The id.
        job_id: JobId,
    },
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used for another request")]
    OtherRequest,
    /// As many wait as may.
    #[error("{waiting} jobs wait already")]
    Full {
        /// How many.
        waiting: u64,
    },
    /// The database takes nothing.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// No job was taken.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Others take the instance for dead, and what was its own is not any more.
    #[error("the instance {instance} was given up")]
    GivenUp {
        /// The instance.
        instance: String,
    },
    /// The database gives nothing.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Something could not happen to a job.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such job.
    #[error("there is no job {job_id}")]
    Unknown {
        /// Its id.
        job_id: JobId,
    },
    /// It can't happen to this one.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It isn't over.
    #[error("the job {job_id} is not over")]
    NotOver {
        /// Its id.
        job_id: JobId,
    },
    /// It has ended with another outcome than the one that is told now.
    #[error("the job has ended with another outcome")]
    OtherOutcome,
    /// The database takes nothing.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

// === impl ChangeError ===

impl ChangeError {
    /// Whether it may be done, or be known, later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.kind != Failing::Refused)
    }
}
