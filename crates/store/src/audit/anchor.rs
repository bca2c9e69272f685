//! Anchors: second places that signed checkpoints of the log are delivered to while it is written.
//!
//! The signing key lies beside the log. An attacker who reads the state directory can cut the end of the log or rewrite
//! it, and sign the result, and the log alone can't show that. A checkpoint in a place that the attacker can't rewrite
//! contradicts such a log: [`AnchorEvidence`] holds what was found there, and `verify` compares.
//!
//! ```text
//! writer: batch on disk ─► reach(position) ─┬─► required anchors, before the batch is acknowledged
//!                                           └─► one thread for each other anchor: every N records or T seconds, and at the end
//! ```

mod bucket;
mod config;
mod courier;
mod delivery;
mod evidence;
mod file;
mod note;
mod status;
mod syslog;

pub use bucket::notes_in_bucket;
pub use evidence::{AnchorEvidence, ConfirmedRange};
pub use file::notes_in_file;
pub use note::Checkpoint;
pub use status::{AnchorFailure, AnchorStatus, DeliveredCheckpoint, statuses};

pub(super) use delivery::Anchors;
pub(super) use evidence::EvidenceComparison;
pub(super) use note::Signer;

use super::AuditError;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A second place for checkpoints, and how often it gets one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorSettings {
    /// Target that checkpoints are delivered to.
    pub target: AnchorTarget,
    /// True if a record is acknowledged only once the anchor has accepted a checkpoint that covers it.
    pub is_required: bool,
    /// The maximum number of records between two checkpoints.
    pub every_records: u64,
    /// The maximum time between a record and the checkpoint that covers it.
    pub every: Duration,
}

/// Target that checkpoints are delivered to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnchorTarget {
    /// A file that is only appended to.
    File(PathBuf),
    /// The socket of a syslog daemon.
    Syslog(PathBuf),
    /// A bucket with object lock, `s3://BUCKET/PREFIX`.
    Bucket(String),
}

/// Why a checkpoint was not delivered or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// The system refused an operation.
    #[error("can't {action} {}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        #[source]
        source: std::io::Error,
    },
    /// The file is no second place: an attacker who can rewrite the log can rewrite it, too.
    #[error("{} lies in the state directory, where it is lost with the log; name a file elsewhere", path.display())]
    BesideTheLog {
        /// The file.
        path: PathBuf,
    },
    /// The path is not that of a regular file.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The bucket can't be used.
    #[error("can't reach {url}")]
    Bucket {
        /// Its URL.
        url: String,
        /// Underlying error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer came in time.
    #[error("{target} did not accept a checkpoint within {} s", after.as_secs())]
    TimedOut {
        /// The anchor.
        target: String,
        /// Timeout that was exceeded.
        after: Duration,
    },
}

/// The anchors of all logs that this process opens by [`super::AuditLog::open`].
static INSTALLED: OnceLock<Vec<AnchorSettings>> = OnceLock::new();

/// Reads the anchors where the process is configured.
pub type AnchorSource = fn() -> Result<Vec<AnchorSettings>, Box<dyn Error + Send + Sync>>;

/// Source of the anchors if none are installed before the first log is opened.
static SOURCE: OnceLock<AnchorSource> = OnceLock::new();

/// Sets the anchors of all logs that this process opens from now on, also if there are none. The first call counts.
pub fn install(anchors: Vec<AnchorSettings>) {
    let _ = INSTALLED.set(anchors);
}

/// Sets where the anchors come from if none are installed before the first log is opened.
pub fn install_source(source: AnchorSource) {
    let _ = SOURCE.set(source);
}

/// The anchors of all logs that this process opens.
///
/// # Errors
/// [`AuditError::Unconfigured`] if the source can't be read: a log without the anchors that it should have is not opened.
pub fn installed() -> Result<Vec<AnchorSettings>, AuditError> {
    if let Some(known) = INSTALLED.get() {
        return Ok(known.clone());
    }
    let found = SOURCE.get().map_or(Ok(Vec::new()), |source| source());
    let found = found.map_err(|source| AuditError::Unconfigured { source: Arc::from(source) })?;
    Ok(INSTALLED.get_or_init(|| found).clone())
}

// === impl AnchorTarget ===

impl fmt::Display for AnchorTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Syslog(path) => write!(f, "syslog:{}", path.display()),
            Self::Bucket(url) => f.write_str(url),
        }
    }
}

// === impl AnchorError ===

impl AnchorError {
    fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
