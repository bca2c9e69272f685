//! Errors of other MCP servers.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use std::error::Error;
use std::time::Duration;

/// Reasons why there is no usable connection to a server.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// Its program can't be found.
    #[error("the server's program is not available")]
    Program(#[source] Box<dyn Error + Send + Sync>),
    /// Its program can't be started.
    #[error("the server's program can't be started")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// It doesn't speak MCP.
    #[error("connection failed")]
    Connection(#[source] Box<dyn Error + Send + Sync>),
    /// It was not ready in time.
    #[error("no connection within {} s", within.as_secs())]
    OutOfTime {
        /// The time limit.
        within: Duration,
    },
    /// It doesn't list its tools.
    #[error("the server does not list its tools")]
    Discovery(#[source] Box<dyn Error + Send + Sync>),
}

/// Reasons why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no connection.
    #[error("the server is not connected")]
    Connection,
    /// The connection has ended during the call.
    #[error("the connection to the server was lost during the call: {why}")]
    Gone {
        /// The reason.
        why: &'static str,
    },
    /// There was no answer in time.
    #[error("no response within {} s", within.as_secs())]
    OutOfTime {
        /// The time limit.
        within: Duration,
    },
    /// The answer is too large.
    #[error("the response is larger than {most} bytes")]
    TooLarge {
        /// The maximum size, in bytes.
        most: usize,
    },
    /// Too many calls wait.
    #[error("too many concurrent calls of this server")]
    TooMany,
    /// The server has refused the call, or has failed.
    #[error("{message}")]
    Invocation {
        /// The server's message.
        message: String,
    },
    /// The server requires input before it answers, which is refused.
    #[error("the server requires client input, which is not supported")]
    Asks,
}

// === impl CallError ===

impl CallError {
    /// Returns the error class.
    pub const fn code(&self) -> DomainCode {
        match self {
            Self::Connection | Self::Gone { .. } => DomainCode::Unavailable,
            Self::OutOfTime { .. } | Self::TooLarge { .. } | Self::TooMany => DomainCode::LimitExceeded,
            Self::Invocation { .. } | Self::Asks => DomainCode::ToolFailed,
        }
    }

    /// Returns the error as a failure.
    pub fn failure(&self, server: &str) -> Failure {
        Failure::new(self.code(), format!("MCP server {server}: {self}"))
    }
}
