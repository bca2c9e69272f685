//! Records of the audit log that several surfaces write.

use crate::id::RunId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind under which it stands in the audit that records were counted and stand as one.
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
    /// How many they are.
    pub count: u64,
    /// When the first of them came (UTC).
    pub first_at: Timestamp,
    /// When the last of them came (UTC).
    pub last_at: Timestamp,
}

/// Why records were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldReason {
    /// Each was a denial like the one before.
    Repeated,
    /// The run has written as much as it may; each was denied for whatever reason.
    AuditQuota,
}
