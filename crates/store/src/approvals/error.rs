//! Why somebody isn't asked, or can't answer.

use crate::audit::{AuditError, EventError};
use crate::database::DatabaseError;
use belljar_contract::approval::{ApprovalStatus, LARGEST_ARGUMENTS_BYTES, LONGEST_REASON};
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
    /// The answer is about other arguments than the call has.
    #[error("the call of approval {id} has arguments with sha256 {sha256}, not {named}; look at it again")]
    OtherArguments {
        /// Which.
        id: ApprovalId,
        /// The digest that was named.
        named: String,
        /// The digest that the call has.
        sha256: String,
    },
    /// What can be shown is not what would be called.
    #[error(
        "the arguments that were kept of approval {id} are not all of what would be called, so it can't be approved; have the call made again"
    )]
    NotWhole {
        /// Which.
        id: ApprovalId,
    },
    /// The arguments are longer than an approver can be shown.
    #[error(
        "the arguments are too large to be reviewed: {bytes} bytes as JSON, of at most {LARGEST_ARGUMENTS_BYTES}"
    )]
    TooLarge {
        /// Their length.
        bytes: usize,
    },
    /// Too much of an agent waits for an answer already.
    #[error(
        "the calls of this agent that wait for an answer have {bytes} bytes of arguments; answer some first"
    )]
    Full {
        /// How much.
        bytes: u64,
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
