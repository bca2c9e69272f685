//! Why there is no daemon.

use crate::tools::ToolsError;
use crate::web::policy_file::PolicyFileError;
use belljar_sandbox::backend::BackendError;
use belljar_store::artifacts::ArtifactsError;
use belljar_store::audit::AuditError;
use belljar_store::database::DatabaseError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The least number of open files that a node works with: its connections take up to half of them.
pub(super) const LEAST_DESCRIPTORS: u64 = 1024;

/// Why a daemon can't be started.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another one has this state.
    #[error("another daemon uses {}", path.display())]
    Taken {
        /// The state directory.
        path: PathBuf,
    },
    /// Another instance of this node is alive at the same database.
    #[error(
        "another instance ({instance}) of the node {node} is alive at this database: its heartbeat goes on"
    )]
    Living {
        /// The node's id, which both have.
        node: String,
        /// The other instance.
        instance: String,
    },
    /// With so few descriptors jobs would fail, and health checks wait, whenever a few clients are connected.
    #[error(
        "a node needs at least {LEAST_DESCRIPTORS} open files, and this process may have {allowed}; raise its hard limit \
         (ulimit -Hn, LimitNOFILE= of systemd)"
    )]
    Descriptors {
        /// The limit.
        allowed: u64,
    },
    /// Something in the state directory can't be used.
    #[error("can't use {}", path.display())]
    State {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no listening there.
    #[error("can't listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There can be no threads.
    #[error("can't start a thread")]
    Threads {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There are no tools for jobs.
    #[error("can't offer tools")]
    Tools {
        /// Why.
        #[source]
        source: ToolsError,
    },
    /// What jobs may reach of the web is not known.
    #[error(transparent)]
    Egress(#[from] PolicyFileError),
    /// There is no place for artifacts.
    #[error(transparent)]
    Artifacts(#[from] ArtifactsError),
    /// What would be called could not be recorded.
    #[error(transparent)]
    Audit(AuditError),
    /// No containers can be made.
    #[error("can't make use of a container engine")]
    Images(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database can't be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What runs have left can't be cleared away.
    #[error(transparent)]
    Clear(BackendError),
    /// It isn't known what agents have earned.
    #[error("it can't be known what agents have earned")]
    Trust {
        /// Why.
        #[source]
        source: DatabaseError,
    },
}
