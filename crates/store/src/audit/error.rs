//! Why nothing can be recorded, and what is wrong with a log.

use super::anchor::AnchorError;
use super::key::PublicKey;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why an event was not recorded, or a log can't be used. Whoever waits for the same batch is told the same.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The system refused something.
    #[error("can't {action} {}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// It is not as it was written.
    #[error("the audit log is damaged: {finding}")]
    Damaged {
        /// What was seen first.
        finding: Finding,
    },
    /// Others than its owner can get at it.
    #[error("{} is open to others than its owner", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
    },
    /// Something went wrong a moment ago. Nothing is taken for a while.
    #[error("the audit log could not be written to a moment ago")]
    Failed {
        /// What.
        #[source]
        source: Arc<AuditError>,
    },
    /// A required anchor has no checkpoint that covers the record. The record is on the disk and not acknowledged.
    #[error("the required audit anchor {target} did not accept a checkpoint")]
    Anchor {
        /// Where checkpoints go.
        target: String,
        /// Why.
        #[source]
        source: Arc<AnchorError>,
    },
    /// It isn't known which anchors the log has. Without them nothing is recorded, so nothing is done that must be.
    #[error("can't tell which anchors the audit log has")]
    Unconfigured {
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The disk is slower than what is submitted.
    #[error("too many records wait to be written")]
    Full,
    /// It was closed.
    #[error("the audit log is closed")]
    Closed,
}

/// The first thing that is wrong with a log or an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, as it is called in the log's folder.
    pub file: String,
    /// The line, counted from 1, if it is about one.
    pub line: Option<u64>,
    /// The record that should be there, if it is about one.
    pub sequence: Option<u64>,
    /// What is wrong.
    pub fault: Fault,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A file is not there.
    #[error("it is missing")]
    Missing,
    /// A file is there that nobody here has made.
    #[error("it does not belong to the log")]
    Foreign,
    /// A file holds something else than it should.
    #[error("it is not as it was written")]
    Altered,
    /// The key is not the one that signed.
    #[error("it is not the key that the log is signed with")]
    OtherKey,
    /// The key is not the one that was asked for.
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
        /// The number of the one that is there.
        found: u64,
    },
    /// A record was made for another place, or the one before it was.
    #[error("the record does not follow the one before it")]
    Unlinked,
    /// A checkpoint is not the log's.
    #[error("the signature is not of the log's key")]
    Forged,
    /// There is something after the last checkpoint, and nobody was writing.
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
