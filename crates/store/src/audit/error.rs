//! Errors of recording events, and faults of a log.

use super::anchor::AnchorError;
use super::key::PublicKey;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reason why an event was not recorded, or a log can't be used. All callers that wait for the same batch get the same
/// error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The system refused an operation.
    #[error("can't {action} {}", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Underlying error.
        #[source]
        source: Arc<io::Error>,
    },
    /// The log was modified or corrupted.
    #[error("the audit log is damaged: {finding}")]
    Damaged {
        /// First fault that was found.
        finding: Finding,
    },
    /// Users other than its owner can access it.
    #[error("{} is open to others than its owner", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
    },
    /// A write failed a moment ago. No events are accepted for a while.
    #[error("the audit log could not be written to a moment ago")]
    Failed {
        /// Underlying error.
        #[source]
        source: Arc<AuditError>,
    },
    /// A required anchor has no checkpoint that covers the record. The record is on disk, but not acknowledged.
    #[error("the required audit anchor {target} did not accept a checkpoint")]
    Anchor {
        /// Anchor that checkpoints are delivered to.
        target: String,
        /// Underlying error.
        #[source]
        source: Arc<AnchorError>,
    },
    /// The log's anchors are unknown. Without them nothing is recorded, so nothing that must be recorded may be done.
    #[error("can't tell which anchors the audit log has")]
    Unconfigured {
        /// Underlying error.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// Events are submitted faster than the disk can write.
    #[error("too many records wait to be written")]
    Full,
    /// The log was closed.
    #[error("the audit log is closed")]
    Closed,
}

/// The first fault of a log or an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the file in the log's folder.
    pub file: String,
    /// Line, counted from 1, if the fault is in one.
    pub line: Option<u64>,
    /// Sequence number of the expected record, if the fault is in one.
    pub sequence: Option<u64>,
    /// Fault that was found.
    pub fault: Fault,
}

/// A fault in an audit log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A file is not there.
    #[error("it is missing")]
    Missing,
    /// The folder contains a file that this program did not create.
    #[error("it does not belong to the log")]
    Foreign,
    /// A file holds something else than it should.
    #[error("it is not as it was written")]
    Altered,
    /// The key is not the one that signed.
    #[error("it is not the key that the log is signed with")]
    OtherKey,
    /// The key is not the expected one.
    #[error("the log is signed with the key {found}")]
    UnexpectedKey {
        /// The key that it is signed with.
        found: Box<PublicKey>,
    },
    /// A line has not the form of a record.
    #[error("this is no record")]
    Malformed,
    /// A record is not what was hashed.
    #[error("the record was changed")]
    Changed,
    /// A record is missing, or stands where it shouldn't.
    #[error("record {found} is here instead")]
    Displaced {
        /// Sequence number of the record that is there.
        found: u64,
    },
    /// A record was made for another place, or the one before it was.
    #[error("the record does not follow the one before it")]
    Unlinked,
    /// The signature of a checkpoint is not by the log's key.
    #[error("the signature is not of the log's key")]
    Forged,
    /// Records follow the last checkpoint although no process was writing.
    #[error("this was added: no checkpoint follows")]
    Added,
    /// The log ends too early.
    #[error("the log is cut: it goes on to record {signed}")]
    Cut {
        /// The last record that there was.
        signed: u64,
    },
    /// An anchor's checkpoint states another hash of the record, under the log's own key.
    #[error(
        "the log was rewritten: {anchor} holds a checkpoint of another record in this place; the anchors vouch for \
         records up to {vouched}"
    )]
    Forked {
        /// The last record that a checkpoint agrees with.
        vouched: u64,
        /// The anchor.
        anchor: String,
    },
    /// An anchor's checkpoint is of a record that the log no longer reaches.
    #[error("the log is cut or rolled back: {anchor} holds a checkpoint of record {anchored}")]
    CutBelowAnchor {
        /// The last record that a checkpoint covers.
        anchored: u64,
        /// The anchor.
        anchor: String,
    },
    /// A record is not the one that was noted elsewhere.
    #[error("the record is not the one that is expected")]
    Unexpected,
}

// === impl AuditError ===

impl AuditError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source: Arc::new(source) }
    }

    pub(super) fn anchor(target: String, source: AnchorError) -> Self {
        Self::Anchor { target, source: Arc::new(source) }
    }

    pub(super) fn damaged(file: impl Into<String>, sequence: Option<u64>, fault: Fault) -> Self {
        Self::Damaged { finding: Finding { file: file.into(), line: None, sequence, fault } }
    }
}

// === impl Finding ===

impl Finding {
    pub(super) fn about(file: impl Into<String>, fault: Fault) -> Self {
        Self { file: file.into(), line: None, sequence: None, fault }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(sequence) = self.sequence {
            write!(f, ", record {sequence}")?;
        }
        write!(f, ": {}", self.fault)
    }
}
