//! Reasons why a call was not made or has no answer.

use crate::upstream::{AnswerError, ConnectError, DialAllowedError};
use std::time::Duration;

/// Reason why a call failed. The text is for the caller: it reveals neither resolved addresses nor any credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// There is no connection of that name.
    #[error("there is no connection {name:?}")]
    Unknown {
        /// Name that was requested.
        name: String,
    },
    /// The call is invalid.
    #[error("{what} can't be sent: {why}")]
    Invalid {
        /// Part that is invalid.
        what: &'static str,
        /// Error in it.
        why: &'static str,
    },
    /// The connection does not allow the method or the path.
    #[error("the connection does not allow that: {reason}")]
    NotAllowed {
        /// Reason code of the policy.
        reason: &'static str,
    },
    /// The call changes something and has no approval.
    #[error(
        "{method} calls require an approval; with `writes: allow` in the connection's configuration they don't"
    )]
    ApprovalNeeded {
        /// The method.
        method: String,
    },
    /// The rate limit was exceeded.
    #[error("the connection may be used {a_minute} times a minute; the next call may be made in {} s", wait.as_secs() + 1)]
    TooMany {
        /// Limit in calls a minute.
        a_minute: u32,
        /// Time until the next call is allowed.
        wait: Duration,
    },
    /// The credential can't be obtained.
    #[error("the connection's credential is not available at present")]
    NoCredential,
    /// The call can't be recorded.
    #[error("calls can't be recorded at present, so none are made")]
    NotRecorded,
    /// The host's name resolves to no address, or to a forbidden one.
    #[error("the connection's hostname resolves to no permitted address")]
    NoAddress,
    /// The host does not answer.
    #[error("the connection's host can't be reached")]
    Unreachable,
    /// The host could not be authenticated.
    #[error("the identity of the connection's host can't be verified")]
    Untrusted,
    /// The time limit was exceeded.
    #[error("the connection's host did not answer in time")]
    OutOfTime,
    /// The answer is malformed or can't be scanned.
    #[error("the connection's host sent an answer that can't be forwarded")]
    BadAnswer,
    /// The answer contains the injected credential.
    #[error("the answer of the connection's host contains the credential")]
    Repeated,
    /// The answer is too large.
    #[error("the answer is larger than {most} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        most: usize,
    },
    /// The caller is shut down.
    #[error("calls are no longer made: the API caller has stopped")]
    Over,
}

// === impl ApiError ===

impl ApiError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_connection",
            Self::Invalid { .. } => "invalid_call",
            Self::NotAllowed { .. } => "not_allowed",
            Self::ApprovalNeeded { .. } => "approval_required",
            Self::TooMany { .. } => "rate_limited",
            Self::NoCredential => "credential_unavailable",
            Self::NotRecorded => "recording_unavailable",
            Self::NoAddress => "no_address",
            Self::Unreachable => "unreachable",
            Self::Untrusted => "upstream_untrusted",
            Self::OutOfTime => "answer_timeout",
            Self::BadAnswer => "answer_malformed",
            Self::Repeated => "credential_repeated",
            Self::TooLarge { .. } => "answer_too_large",
            Self::Over => "over",
        }
    }

    /// Returns true if nothing of the call was sent.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Unreachable
                | Self::Untrusted
                | Self::OutOfTime
                | Self::BadAnswer
                | Self::Repeated
                | Self::TooLarge { .. }
                | Self::Over
        )
    }

    pub(super) fn of_dial(error: &DialAllowedError) -> Self {
        match error {
            DialAllowedError::Denied(_) => Self::NoAddress,
            DialAllowedError::NoAnswer => Self::OutOfTime,
            DialAllowedError::Failed { .. }
            | DialAllowedError::Refused { .. }
            | DialAllowedError::NoProxy { .. } => Self::Unreachable,
        }
    }

    pub(super) fn of_connect(error: &ConnectError) -> Self {
        match error {
            ConnectError::Untrusted { .. }
            | ConnectError::NoTrust { .. }
            | ConnectError::OtherUser { .. } => Self::Untrusted,
            ConnectError::Unreachable { .. } | ConnectError::Forbidden => Self::Unreachable,
        }
    }

    pub(super) fn of_answer(error: &AnswerError, most: usize) -> Self {
        match error {
            AnswerError::Silent => Self::OutOfTime,
            AnswerError::TooLarge => Self::TooLarge { most },
            AnswerError::Ended(_) | AnswerError::Malformed(_) => Self::BadAnswer,
        }
    }
}
