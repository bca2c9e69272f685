//! Approvals: requests to a person about one call of an agent, and their states.
//!
//! ```text
//! asked ─► pending ─┬─► approved ─┬─► used: the call was begun, once
//!                   │             └─► expired
//!                   ├─► denied
//!                   └─► expired: no decision in time
//! ```

use crate::action::{ActionType, Risk};
use crate::id::{AgentId, ApprovalId, UserId};
use crate::tool::{ToolName, ToolSubject};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use uuid::Uuid;

/// A question about one call with exactly these arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Its id; made by the host.
    pub id: ApprovalId,
    /// The decision about the call, as recorded in the audit log.
    #[schemars(with = "String")]
    pub decision_id: Uuid,
    /// The agent, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Identity that makes the call.
    #[schemars(with = "Map<String, Value>")]
    pub subject: ToolSubject,
    /// Tool that is called.
    #[schemars(with = "String")]
    pub tool: ToolName,
    /// Action that the call performs.
    #[schemars(with = "String")]
    pub action_type: ActionType,
    /// Risk of the action: `low`, `medium`, `high` or `critical`.
    #[schemars(with = "String")]
    pub risk: Risk,
    /// The SHA-256 of the arguments as compact JSON with members in the order of their names, in lower-case hexadecimal. An approval
    /// covers exactly these arguments.
    pub arguments_sha256: String,
    /// The length of that JSON in bytes.
    #[serde(default)]
    pub arguments_bytes: u64,
    /// The arguments, whole and unredacted; if `is_preview`, only the beginning of their JSON, as a text.
    pub arguments: Value,
    /// True if `arguments` is a preview, as in lists of approvals. Reading the approval by its id returns the whole.
    #[serde(default)]
    pub is_preview: bool,
    /// Objects that the call acts on besides its arguments, as the host knows them: the workspace, the remote, the
    /// database. An approval is used only by a call with an equal scope.
    #[serde(default, skip_serializing_if = "CallScope::is_empty")]
    pub scope: CallScope,
    /// Reason for asking a person.
    pub reason: String,
    /// Status of the approval.
    pub status: ApprovalStatus,
    /// Time of the request (UTC).
    pub created_at: Timestamp,
    /// Time from which on the question counts as denied, and its approval can't be used (UTC); absent if it doesn't
    /// expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Decision, once it was made.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Time at which the call was begun (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

/// Objects that a call acts on besides its arguments, by name. The host computes them anew for each call; they contain
/// no credentials.
pub type CallScope = Map<String, Value>;

/// A user's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Time of the decision (UTC).
    pub decided_at: Timestamp,
    /// User who decided.
    pub decided_by: UserId,
    /// Reason; a denial always has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
}

/// Status of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// No decision was made yet.
    Pending,
    /// A user has approved the call, and the approval is unused.
    Approved,
    /// A user has denied the call.
    Denied,
    /// It was not decided in time, or approved and not used in time.
    Expired,
    /// The approval was used.
    Used,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Approve that call, once.
    Approve,
    /// Deny it.
    Deny,
}

/// A page of approvals, the last asked first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPage {
    /// The approvals.
    pub approvals: Vec<Approval>,
    /// Token for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// Arguments longer than this, as JSON in bytes, are too large to be reviewed: the call is refused instead of asked about.
pub const LARGEST_ARGUMENTS_BYTES: usize = 512 << 10;

/// Arguments that are nested deeper than this can't be reviewed either.
pub const DEEPEST_ARGUMENTS: usize = 64;

/// Maximum length of a scope, as JSON in bytes. A call with a longer one can't be approved.
pub const LARGEST_SCOPE_BYTES: usize = 32 << 10;

/// A reason has no more characters.
pub const LONGEST_REASON: usize = 1_024;

/// Pattern for a reason in schemas.
pub(crate) const REASON_PATTERN: &str = r"^[^\u0000]*[^\u0000-\u0020\u007f][^\u0000]*$";

/// Pattern for a digest of arguments in schemas.
pub(crate) const DIGEST_PATTERN: &str = "^[0-9a-f]{64}$";

/// Kind of the audit record that precedes a new question.
pub const APPROVAL_ASKED: &str = "approval_asked";
/// Kind of the audit record that precedes a decision.
pub const APPROVAL_DECIDED: &str = "approval_decided";
/// Kind of the audit record that precedes the use of an approval.
pub const APPROVAL_USED: &str = "approval_used";

/// Returns true if the text is a readable reason.
pub fn is_reason(text: &str) -> bool {
    // NUL is not accepted by every database.
    let is_said = |c: char| !matches!(c, '\0'..=' ' | '\x7f');
    text.contains(is_said) && !text.contains('\0') && text.chars().count() <= LONGEST_REASON
}

/// Returns true if the text is a SHA-256 in lower-case hexadecimal.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

// === impl Approval ===

impl Approval {
    /// Returns true if the approval already has this decision, and it is still in effect.
    pub fn is_answered_so(&self, ruling: Ruling) -> bool {
        match ruling {
            Ruling::Approve => matches!(self.status, ApprovalStatus::Approved | ApprovalStatus::Used),
            Ruling::Deny => self.status == ApprovalStatus::Denied,
        }
    }
}

// === impl ApprovalStatus ===

impl ApprovalStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Used];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Used => "used",
        }
    }

    /// Returns the value with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Ruling ===

impl Ruling {
    /// Returns the status after this decision.
    pub const fn status(self) -> ApprovalStatus {
        match self {
            Self::Approve => ApprovalStatus::Approved,
            Self::Deny => ApprovalStatus::Denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pending() -> Value {
        let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
        json!({
            "id": id, "decision_id": id, "subject": { "subject_type": "operator" }, "tool": "tell",
            "action_type": "docs:write", "risk": "low", "arguments_sha256": "0".repeat(64), "arguments_bytes": 2,
            "arguments": {}, "is_preview": false, "reason": "it takes a yes", "status": "pending", "created_at": "2026-01-02T03:04:05Z",
        })
    }

    #[test]
    fn approval_round_trips_pending_and_decided() {
        let mut decided = pending();
        decided["status"] = json!("denied");
        decided["decided_at"] = json!("2026-01-02T03:04:06Z");
        decided["decided_by"] = json!("ada");
        decided["decision_reason"] = json!("no");
        let mut scoped = pending();
        scoped["scope"] = json!({ "workspace": "/srv/app" });
        for document in [pending(), decided, scoped] {
            let read: Approval = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(read.decision.is_some(), document.get("decided_by").is_some());
            assert_eq!(serde_json::to_value(&read).unwrap(), document);
        }
    }

    #[test]
    fn approval_reason_must_be_nonblank_and_within_length_limit() {
        assert!(is_reason("too risky") && is_reason(&"ü".repeat(LONGEST_REASON)));
        assert!(!is_reason(" \n") && !is_reason("a\0") && !is_reason(&"x".repeat(LONGEST_REASON + 1)));
    }
}
