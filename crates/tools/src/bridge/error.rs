//! How another server fails, by what it failed at.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use std::error::Error;
use std::time::Duration;

/// There is no connection to a server, or nothing can be learned from it.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// Its program can't be found.
    #[error("its program can't be had")]
    Program(#[source] Box<dyn Error + Send + Sync>),
    /// Its program can't be started.
    #[error("its program can't be started")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// It does not answer as a server of MCP does.
    #[error("it can't be connected to")]
    Connection(#[source] Box<dyn Error + Send + Sync>),
    /// It has not answered in time.
    #[error("it was not there within {} s", within.as_secs())]
    OutOfTime {
        /// So long was waited.
        within: Duration,
    },
    /// It does not say which tools it has.
    #[error("it does not list its tools")]
    Discovery(#[source] Box<dyn Error + Send + Sync>),
}

/// A call has come to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no connection.
    #[error("the server is not there")]
    Connection,
    /// The connection has ended under the call.
    #[error("the server has gone during the call: {why}")]
    Gone {
        /// Why.
        why: &'static str,
    },
    /// No answer in time.
    #[error("no answer within {} s", within.as_secs())]
    OutOfTime {
        /// So long was waited.
        within: Duration,
    },
    /// There is more than is taken.
    #[error("the answer is larger than {most} bytes")]
    TooLarge {
        /// As much is taken.
        most: usize,
    },
    /// As many calls wait as may.
    #[error("too many calls of this server at a time")]
    TooMany,
    /// The server refuses it, or has failed.
    #[error("{message}")]
    Invocation {
        /// What it says.
        message: String,
    },
    /// It wants something before it answers, which nobody gives it.
    #[error("the server asks for something in return, which is not given here")]
    Asks,
}

// === impl CallError ===

impl CallError {
    /// Its class.
    pub const fn code(&self) -> DomainCode {
        match self {
            Self::Connection | Self::Gone { .. } => DomainCode::Unavailable,
            Self::OutOfTime { .. } | Self::TooLarge { .. } | Self::TooMany => DomainCode::LimitExceeded,
            Self::Invocation { .. } | Self::Asks => DomainCode::ToolFailed,
        }
    }

    /// As it is answered.
    pub fn failure(&self, server: &str) -> Failure {
        Failure::new(self.code(), format!("the MCP server {server}: {self}"))
    }
}
