//! Records of the audit log that several surfaces write.

use crate::id::RunId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Kind of the audit record that stands for several counted records.
pub const FOLDED: &str = "audit_folded";

/// Denials of one run that were counted instead of being recorded one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoldedRecords {
    /// The run that they are of.
    pub run_id: RunId,
    /// Why they were counted.
    pub why: FoldReason,
    /// The id of the last record of that kind that was written whole: a passage's, or a call's.
    pub like: String,
    /// Number of the denials.
    pub count: u64,
    /// Time of the first one (UTC).
    pub first_at: Timestamp,
    /// Time of the last one (UTC).
    pub last_at: Timestamp,
}

/// Reason why records were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldReason {
    /// The denial is the same as the one before.
    Repeated,
    /// The run's audit quota is used up; the denials may have any reason.
    AuditQuota,
}
