//! Why somebody isn't asked, or can't answer.

use crate::audit::{AuditError, EventError};
use crate::database::DatabaseError;
use belljar_contract::approval::{ApprovalStatus, LONGEST_REASON};
use belljar_contract::id::ApprovalId;

/// Nobody is asked, nothing is answered, or no yes is used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("there is no approval {id}")]
    Unknown {
        /// Which.
        id: ApprovalId,
    },
    /// It was answered otherwise.
    #[error("the approval {id} is {status} already")]
    Decided {
        /// Which.
        id: ApprovalId,
        /// What has become of it.
        status: ApprovalStatus,
    },
    /// Nobody has answered in time.
    #[error("the approval {id} has expired; the call has to be made again, which asks again")]
    Expired {
        /// Which.
        id: ApprovalId,
    },
    /// A no says nothing, or something says too much.
    #[error("a no has a reason, and a reason has 1 to {LONGEST_REASON} characters")]
    Reason,
    /// It has no form in the audit.
    #[error("it can't be put into the audit")]
    Event(#[from] EventError),
    /// It can't be recorded, and so it doesn't happen.
    #[error("it can't be recorded")]
    Audit(#[from] AuditError),
    /// The database does not do what it should.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
