//! Why a node has not done what it was asked for.

use belljar_contract::worker::problem::{ProblemDetails, ProblemKind};
use belljar_egress::http1::MalformedHttp;
use belljar_trusted::tcp_server::UntrustedServerError;
use std::io;

/// Error of a request to a node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The connection can't be established.
    #[error("can't reach a node at {node}")]
    Unreachable {
        node: String,
        #[source]
        source: io::Error,
    },
    /// The address belongs to a process on this machine that another user may run.
    #[error("nothing was sent to {node}")]
    Untrusted {
        node: String,
        #[source]
        source: UntrustedServerError,
    },
    /// The connection was established and then broke.
    #[error("the connection to {node} broke")]
    Broken {
        node: String,
        #[source]
        source: io::Error,
    },
    /// The node did not respond in time.
    #[error("no answer from {node} in time")]
    Silent { node: String },
    /// The response is no valid HTTP.
    #[error("{node} sent a malformed response")]
    Malformed {
        node: String,
        #[source]
        source: MalformedHttp,
    },
    /// It says too much.
    #[error("a response of {node} exceeds the size limit")]
    TooLarge { node: String },
    /// It speaks HTTP, and not the Worker API.
    #[error("what answers at {node} with status {status} is no node")]
    NoNode { node: String, status: u16 },
    /// It says something else than what was asked for.
    #[error("a response of {node} is not the expected document")]
    Document {
        node: String,
        #[source]
        source: serde_json::Error,
    },
    /// The node says why it can't.
    #[error("{}: {}", problem.title, problem.detail)]
    Refused { problem: Box<ProblemDetails> },
}

// === impl ClientError ===

impl ClientError {
    /// Whether it may be otherwise when the same is asked again.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } | Self::Silent { .. } => true,
            Self::Refused { problem } => {
                matches!(problem.kind, ProblemKind::Overloaded | ProblemKind::Unavailable)
            }
            _ => false,
        }
    }

    /// Whether what was asked for is at fault: asked again it will be refused again, and nothing has been done.
    pub(crate) fn is_bad_input(&self) -> bool {
        let of_input = |kind| {
            use ProblemKind::{Authorization, Conflict, MediaType, NotFound, TooLarge, Validation};
            matches!(kind, Validation | Authorization | NotFound | Conflict | TooLarge | MediaType)
        };
        matches!(self, Self::Refused { problem } if of_input(problem.kind))
    }

    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some(
                "is it running? `belljar node --listen 127.0.0.1:12090 --token-file FILE` starts one; without --node \
                 and BELLJAR_NODE the job is run here",
            ),
            Self::Untrusted { .. } => Some(
                "any user of this machine can listen where a node was; `--node-user USER` names the user whose node it is, \
                 and `--node-user any` is for one in a container or another network namespace",
            ),
            Self::NoNode { .. } | Self::Malformed { .. } | Self::Document { .. } => {
                Some("--node is where `belljar node` listens, such as http://127.0.0.1:12090")
            }
            Self::Refused { problem } => match problem.kind {
                ProblemKind::Authentication => Some(
                    "the node refused the token: --token-file must name the token file that the node was started with",
                ),
                ProblemKind::Overloaded => Some("repeat the command when some of its jobs have ended"),
                _ => None,
            },
            _ => None,
        }
    }
}
