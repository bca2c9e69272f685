//! Reasons why the daemon can't start.

use crate::tools::ToolsError;
use belljar_execution::policy_file::PolicyFileError;
use belljar_sandbox::backend::BackendError;
use belljar_store::artifacts::ArtifactsError;
use belljar_store::audit::AuditError;
use belljar_store::database::DatabaseError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Minimum limit of open files that a node needs: its connections take up to half of them.
pub(super) const LEAST_DESCRIPTORS: u64 = 1024;

/// Reasons why a daemon can't be started.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another daemon uses this state directory.
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
    /// The limit of open files is too low: jobs would fail, and health checks wait, whenever a few clients are connected.
    #[error(
        "a node needs at least {LEAST_DESCRIPTORS} open files, and this process may have {allowed}; raise its hard limit \
         (ulimit -Hn, LimitNOFILE= of systemd)"
    )]
    Descriptors {
        /// The limit.
        allowed: u64,
    },
    /// A file in the state directory can't be used.
    #[error("can't use {}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The address can't be listened on.
    #[error("can't listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A thread can't be started.
    #[error("can't start a thread")]
    Threads {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The tools can't be set up.
    #[error("can't offer tools")]
    Tools {
        /// The cause.
        #[source]
        source: ToolsError,
    },
    /// The web policy can't be read.
    #[error(transparent)]
    Egress(#[from] PolicyFileError),
    /// The artifact store can't be used.
    #[error(transparent)]
    Artifacts(#[from] ArtifactsError),
    /// The audit log can't be opened.
    #[error(transparent)]
    Audit(AuditError),
    /// The container engine can't be used.
    #[error("can't make use of a container engine")]
    Images(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database can't be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Leftovers of former runs can't be removed.
    #[error(transparent)]
    Clear(BackendError),
    /// The trust records can't be read.
    #[error("it can't be known what agents have earned")]
    Trust {
        /// The cause.
        #[source]
        source: DatabaseError,
    },
}
