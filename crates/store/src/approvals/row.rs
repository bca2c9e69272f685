//! Approvals as rows.

use super::Question;
use crate::database::{DatabaseError, Row, Value, unreadable, values};
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::{Approval, ApprovalStatus, Decision};
use belljar_contract::id::{AgentId, ApprovalId, UserId};
use belljar_contract::tool::ToolName;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// What has become of one at the time `$1`, which every statement with this has.
macro_rules! status {
    () => {
        "CASE WHEN status IN ('pending', 'approved') AND expires_at_ms <= $1 THEN 'expired' ELSE status END"
    };
}
pub(super) use status;

macro_rules! columns {
    () => {
        concat!(
            "number, id, decision_id, agent_id, subject, tool, action_type, risk, arguments_sha256, arguments, reason, ",
            $crate::approvals::row::status!(),
            " AS becoming, created_at_ms, expires_at_ms, decided_at_ms, decided_by, decision_reason, used_at_ms"
        )
    };
}
pub(super) use columns;

/// The first of them, if there is one.
pub(super) fn first(rows: &[Row]) -> Result<Option<Approval>, DatabaseError> {
    rows.first().map(read).transpose()
}

/// One with its place in the order in which they were asked.
pub(super) fn numbered(row: &Row) -> Result<(u64, Approval), DatabaseError> {
    Ok((row.count("number")?, read(row)?))
}

fn read(row: &Row) -> Result<Approval, DatabaseError> {
    let status = row.text("becoming")?;
    let unknown = |what: &str, found: &str| unreadable(format!("the {what} {found:?}").into());
    let risk = row.text("risk")?;
    Ok(Approval {
        id: row.parsed("id", ApprovalId::parse)?,
        decision_id: row.parsed("decision_id", Uuid::parse_str)?,
        agent_id: row.optionally_parsed("agent_id", AgentId::parse)?,
        subject: document(row, "subject")?,
        tool: row.parsed("tool", ToolName::parse)?,
        action_type: row.parsed("action_type", ActionType::parse)?,
        risk: Risk::ALL.into_iter().find(|one| one.as_str() == risk).ok_or_else(|| unknown("risk", &risk))?,
        arguments_sha256: row.text("arguments_sha256")?,
        arguments: document(row, "arguments")?,
        reason: row.text("reason")?,
        status: ApprovalStatus::named(&status).ok_or_else(|| unknown("status", &status))?,
        created_at: row.time("created_at_ms")?,
        expires_at: row.optional_time("expires_at_ms")?,
        decision: decision(row)?,
        used_at: row.optional_time("used_at_ms")?,
    })
}

fn decision(row: &Row) -> Result<Option<Decision>, DatabaseError> {
    let Some(decided_at) = row.optional_time("decided_at_ms")? else { return Ok(None) };
    let decided_by = row.parsed("decided_by", UserId::parse)?;
    Ok(Some(Decision { decided_at, decided_by, decision_reason: row.optional_text("decision_reason")? }))
}

fn document<T: DeserializeOwned>(row: &Row, column: &'static str) -> Result<T, DatabaseError> {
    serde_json::from_str(&row.text(column)?).map_err(|error| unreadable(error.into()))
}

// === impl Question ===

impl Question {
    pub(super) fn values(self, key: String, now: Timestamp, expires_at: Option<Timestamp>) -> Vec<Value> {
        let subject = serde_json::json!(self.call.subject).to_string();
        values![
            self.id.key(),
            key,
            self.decision_id.to_string(),
            self.call.agent_id.map(String::from),
            subject,
            self.call.tool.as_str(),
            self.action.as_str(),
            self.risk.as_str(),
            self.call.arguments_sha256,
            self.arguments.to_string(),
            self.reason,
            now,
            expires_at,
        ]
    }
}
