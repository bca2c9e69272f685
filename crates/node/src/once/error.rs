//! What can go wrong around a program that is run.

use super::{OnceCode, PlaceError};
use crate::book::BookError;
use crate::serving::ServeError;
use belljar_egress::identity::IdentityError;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::directory::DirectoryError;
use belljar_sandbox::enclosure::EnclosureError;
use belljar_sandbox::native::StartError;
use belljar_sandbox::state::StateError;
use belljar_sandbox::workspace::changes::ChangesError;
use rustix::io::Errno;

/// What went wrong around a program.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// Connections can't be looked into.
    #[error(transparent)]
    Inspection(#[from] crate::inspection::InspectionError),
    /// Leave was given for another run.
    #[error("the grant was presented for another run")]
    OtherRun,
    /// Who pays can't be told to whoever bills it.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// There is no place for the run.
    #[error("can't prepare the run")]
    State(#[from] StateError),
    /// Its workspace can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The agent can't be told what to do.
    #[error(transparent)]
    Messages(#[from] PlaceError),
    /// There is no sandbox.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no container, or the program can't be started in it.
    #[error(transparent)]
    Container(#[from] BackendError),
    /// A sandbox does not do what it is told.
    #[error("lost hold of the sandbox")]
    Lost(#[source] EnclosureError),
    /// Somebody wanted it to stop before it began.
    #[error("it was stopped before it began")]
    Canceled,
    /// Its home can't have these files.
    #[error("can't put files into the agent's home")]
    Home {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// What it takes to keep its changes can't be written down.
    #[error("can't record the copy that the run works on")]
    Record {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It can't have models.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The policy for the web can't be followed.
    #[error("can't follow the policy for the web")]
    Follow(#[source] std::io::Error),
    /// Not everything is recorded.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The sandbox can't be watched.
    #[error("can't watch the sandbox")]
    Watch {
        /// Why.
        #[source]
        source: Errno,
    },
    /// What it changed can't be told.
    #[error(transparent)]
    Changes(#[from] ChangesError),
}

// === impl OnceError ===

impl OnceError {
    /// Its code.
    pub fn code(&self) -> OnceCode {
        match self {
            Self::Start(_) | Self::Container(_) => OnceCode::ContainerFailed,
            Self::Canceled => OnceCode::Canceled,
            _ => OnceCode::Internal,
        }
    }
}
