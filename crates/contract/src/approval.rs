//! Approvals: what a person is asked about one call of an agent, and what became of the question.
//!
//! ```text
//! asked ─► pending ─┬─► approved ─┬─► used: the call was begun, once
//!                   │             └─► expired
//!                   ├─► denied
//!                   └─► expired: nobody has answered in time
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
    /// The decision about a call that it is about, as the audit has it.
    #[schemars(with = "String")]
    pub decision_id: Uuid,
    /// The agent, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Who calls.
    #[schemars(with = "Map<String, Value>")]
    pub subject: ToolSubject,
    /// Which tool.
    #[schemars(with = "String")]
    pub tool: ToolName,
    /// What the agent does by it.
    #[schemars(with = "String")]
    pub action_type: ActionType,
    /// How much may go wrong by that: `low`, `medium`, `high` or `critical`.
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
    /// Whether `arguments` is a preview, as in lists of approvals. Reading the approval by its id gives the whole.
    #[serde(default)]
    pub is_preview: bool,
    /// What the call acts on besides its arguments, as the host knows it: the workspace, the remote, the database. An approval is used
    /// only by a call with an equal scope.
    #[serde(default, skip_serializing_if = "CallScope::is_empty")]
    pub scope: CallScope,
    /// Why a person is asked.
    pub reason: String,
    /// What has become of it.
    pub status: ApprovalStatus,
    /// When it was asked (UTC).
    pub created_at: Timestamp,
    /// From when on it is denied and its yes isn't good any more (UTC); nothing if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What was decided, once it was.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// When the call was begun (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

/// What a call acts on besides its arguments, by name. The host computes it, anew for each call; it has no credentials.
pub type CallScope = Map<String, Value>;

/// What somebody has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// When (UTC).
    pub decided_at: Timestamp,
    /// Who.
    pub decided_by: UserId,
    /// Why; a no has a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
}

/// What has become of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Nobody has answered.
    Pending,
    /// Somebody has said yes, and nobody has used it.
    Approved,
    /// Somebody has said no.
    Denied,
    /// It was not answered, or its yes not used, in time.
    Expired,
    /// Its yes was used.
    Used,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Yes, to that call, once.
    Approve,
    /// No.
    Deny,
}

/// Some of them, the last asked first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPage {
    /// The approvals.
    pub approvals: Vec<Approval>,
    /// What gives the next page, if there is one.
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

/// What a schema says of it.
pub(crate) const REASON_PATTERN: &str = r"^[^\u0000]*[^\u0000-\u0020\u007f][^\u0000]*$";

/// What a schema says of a digest of arguments.
pub(crate) const DIGEST_PATTERN: &str = "^[0-9a-f]{64}$";

/// The kinds under which they stand in the audit.
pub const APPROVAL_ASKED: &str = "approval_asked";
/// Somebody is about to answer.
pub const APPROVAL_DECIDED: &str = "approval_decided";
/// A yes is about to be used.
pub const APPROVAL_USED: &str = "approval_used";

/// Whether the text is a reason that somebody can read.
pub fn is_reason(text: &str) -> bool {
    // What is no text to every database is none.
    let is_said = |c: char| !matches!(c, '\0'..=' ' | '\x7f');
    text.contains(is_said) && !text.contains('\0') && text.chars().count() <= LONGEST_REASON
}

/// Whether the text is a SHA-256 in lower-case hexadecimal.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

// === impl Approval ===

impl Approval {
    /// Whether somebody has said just that, and it still holds.
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

    /// The one of that name.
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
    /// What a question is after it.
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
    fn an_approval_is_read_as_it_was_written_decided_or_not() {
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
    fn a_reason_says_something_and_not_too_much() {
        assert!(is_reason("too risky") && is_reason(&"ü".repeat(LONGEST_REASON)));
        assert!(!is_reason(" \n") && !is_reason("a\0") && !is_reason(&"x".repeat(LONGEST_REASON + 1)));
    }
}
