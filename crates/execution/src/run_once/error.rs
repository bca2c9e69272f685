//! Errors around the program of a run.

use super::{OnceCode, WriteMessagesError};
use crate::serving::ServeError;
use belljar_egress::identity::IdentityError;
use belljar_files::directory::DirectoryError;
use belljar_journal::RunJournalError;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::enclosure::EnclosureError;
use belljar_sandbox::native::StartError;
use belljar_sandbox::state::StateError;
use belljar_sandbox::workspace::changes::ChangesError;
use rustix::io::Errno;

/// Errors around a program.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// TLS interception can't be set up.
    #[error(transparent)]
    Inspection(#[from] crate::tls_interception::TlsInterceptionError),
    /// The permission is for another run.
    #[error("the grant was presented for another run")]
    OtherRun,
    /// The billing identity is not valid.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The run's folder can't be made.
    #[error("can't prepare the run")]
    State(#[from] StateError),
    /// Its workspace can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The agent's messages can't be written.
    #[error(transparent)]
    Messages(#[from] WriteMessagesError),
    /// The sandbox can't be made, or the program can't be started in it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The container can't be made, or the program can't be started in it.
    #[error(transparent)]
    Container(#[from] BackendError),
    /// The sandbox doesn't respond to its control operations.
    #[error("lost hold of the sandbox")]
    Lost(#[source] EnclosureError),
    /// It was canceled before it began.
    #[error("it was stopped before it began")]
    Canceled,
    /// Its home files can't be written.
    #[error("can't put files into the agent's home")]
    Home {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The data that is needed to keep its changes can't be recorded.
    #[error("cannot write the record of the run's workspace copy")]
    Record {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Its hatches can't be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The web policy file can't be followed.
    #[error("can't follow the policy for the web")]
    Follow(#[source] std::io::Error),
    /// The run is not completely recorded.
    #[error(transparent)]
    Book(#[from] RunJournalError),
    /// The program's output can't be watched.
    #[error("can't watch the sandbox")]
    Watch {
        /// The cause.
        #[source]
        source: Errno,
    },
    /// Its changes can't be read.
    #[error(transparent)]
    Changes(#[from] ChangesError),
}

// === impl OnceError ===

impl OnceError {
    /// Returns the error code.
    pub fn code(&self) -> OnceCode {
        match self {
            Self::Start(_) | Self::Container(_) => OnceCode::ContainerFailed,
            Self::Canceled => OnceCode::Canceled,
            _ => OnceCode::Internal,
        }
    }
}
