//! Errors of asking for, deciding and using approvals.

use crate::audit::{AuditError, EventError};
use crate::database::DatabaseError;
use belljar_contract::approval::{ApprovalStatus, LARGEST_ARGUMENTS_BYTES, LONGEST_REASON};
use belljar_contract::id::ApprovalId;

/// A question is not stored, a decision is not recorded, or an approval is not used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("there is no approval {id}")]
    Unknown {
        /// Id of the approval.
        id: ApprovalId,
    },
    /// The approval was decided otherwise, or used.
    #[error("the approval {id} is {status} already")]
    Decided {
        /// Id of the approval.
        id: ApprovalId,
        /// Its present status.
        status: ApprovalStatus,
    },
    /// No decision was made in time.
    #[error("the approval {id} has expired; the call has to be made again, which asks again")]
    Expired {
        /// Id of the approval.
        id: ApprovalId,
    },
    /// The decision names other arguments than the call has.
    #[error("the call of approval {id} has arguments with sha256 {sha256}, not {named}; look at it again")]
    OtherArguments {
        /// Id of the approval.
        id: ApprovalId,
        /// The digest that was named.
        named: String,
        /// The digest that the call has.
        sha256: String,
    },
    /// The arguments that a person would be shown don't have the digest of the call's arguments.
    #[error(
        "the arguments that were kept of approval {id} are not all of what would be called, so it can't be approved; have the call made again"
    )]
    NotWhole {
        /// Id of the approval.
        id: ApprovalId,
    },
    /// The arguments are too long to be shown to an approver.
    #[error(
        "the arguments are too large to be reviewed: {bytes} bytes as JSON, of at most {LARGEST_ARGUMENTS_BYTES}"
    )]
    TooLarge {
        /// Their length.
        bytes: usize,
    },
    /// Open questions of the agent have too many bytes of arguments already.
    #[error(
        "the calls of this agent that wait for an answer have {bytes} bytes of arguments; answer some first"
    )]
    Full {
        /// Their length, in bytes.
        bytes: u64,
    },
    /// A denial has no reason, or a reason is too long.
    #[error("a no has a reason, and a reason has 1 to {LONGEST_REASON} characters")]
    Reason,
    /// The event can't be serialised for the audit log.
    #[error("it can't be put into the audit")]
    Event(#[from] EventError),
    /// The audit record can't be written, so the change is not made.
    #[error("it can't be recorded")]
    Audit(#[from] AuditError),
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
