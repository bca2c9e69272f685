//! Why a call was not made, or has no answer.

use crate::upstream::{AnswerError, ConnectError, DialAllowedError};
use std::time::Duration;

/// Why. What it says is for whoever called, and so nothing of where names lead or of what was filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No such connection.
    #[error("there is no connection {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// It isn't a call that can be made at all.
    #[error("{what} can't be sent: {why}")]
    Invalid {
        /// Which part of it.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The connection is for other methods or paths.
    #[error("the connection is not for that: {reason}")]
    NotAllowed {
        /// Why: the code of a policy.
        reason: &'static str,
    },
    /// It changes something, and nobody has said yes to it.
    #[error(
        "{method} changes something, and takes an approval; it is made without one where the connection says `writes: allow`"
    )]
    ApprovalNeeded {
        /// The method.
        method: String,
    },
    /// There were too many.
    #[error("the connection may be used {a_minute} times a minute; the next call may be made in {} s", wait.as_secs() + 1)]
    TooMany {
        /// How many there may be.
        a_minute: u32,
        /// When there may be one more.
        wait: Duration,
    },
    /// There is nothing to let the call in with.
    #[error("the connection's credential is not there at present")]
    NoCredential,
    /// It can't be written down.
    #[error("what goes out can't be recorded at present, and so nothing does")]
    NotRecorded,
    /// Its name leads where it may not, or nowhere.
    #[error("the connection's host leads to no address that it may be reached at")]
    NoAddress,
    /// Nobody answers.
    #[error("the connection's host can't be reached")]
    Unreachable,
    /// Whoever answers has not shown who it is.
    #[error("the connection's host has not shown who it is")]
    Untrusted,
    /// It took too long.
    #[error("the connection's host did not answer in time")]
    OutOfTime,
    /// What it says is no answer, or can't be looked at.
    #[error("the connection's host gave no answer that can be passed on")]
    BadAnswer,
    /// It has answered with what was filled in.
    #[error("the connection's host has answered with its credential")]
    Repeated,
    /// There is too much of it.
    #[error("the answer is larger than {most} bytes")]
    TooLarge {
        /// As much is taken.
        most: usize,
    },
    /// Nothing is sent any more.
    #[error("nothing is sent any more")]
    Over,
}

// === impl ApiError ===

impl ApiError {
    /// The stable code.
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

    /// Whether nothing of the call was sent.
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
