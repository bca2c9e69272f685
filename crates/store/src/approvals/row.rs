//! Approvals as rows.

use super::ApprovalRequest;
use crate::database::{DatabaseError, Row, Value, unreadable, values};
use crate::digest::sha256;
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::{Approval, ApprovalStatus, Decision};
use belljar_contract::id::{AgentId, ApprovalId, UserId};
use belljar_contract::tool::ToolName;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use uuid::Uuid;

/// SQL for the status of an approval at the time `$1`; every statement that uses it passes that time.
macro_rules! status {
    () => {
        "CASE WHEN status IN ('pending', 'approved') AND expires_at_ms <= $1 THEN 'expired' ELSE status END"
    };
}
pub(super) use status;

macro_rules! columns {
    () => {
        $crate::approvals::row::columns!("arguments")
    };
    ($arguments:expr) => {
        concat!(
            "number, id, decision_id, agent_id, subject, tool, action_type, risk, arguments_sha256, ",
            $arguments,
            ", reason, (SELECT scope FROM approval_scopes WHERE approval_id = approvals.id) AS scope, ",
            $crate::approvals::row::status!(),
            " AS becoming, created_at_ms, expires_at_ms, decided_at_ms, decided_by, decision_reason, used_at_ms"
        )
    };
}
pub(super) use columns;

/// A page of approvals, with at most 2,048 characters of the arguments of each. `$octets` is the engine's expression for their length.
macro_rules! listed {
    ($octets:literal) => {
        concat!(
            "SELECT ",
            $crate::approvals::row::columns!("substr(arguments, 1, 2048) AS arguments"),
            ", ",
            $octets,
            " AS arguments_bytes FROM approvals WHERE number < $2 AND ($3 = '' OR ",
            $crate::approvals::row::status!(),
            " = $3) ORDER BY number DESC LIMIT $4"
        )
    };
}
pub(super) use listed;

/// The length of the arguments of an agent's open questions.
macro_rules! open_bytes {
    ($octets:literal) => {
        concat!(
            "SELECT coalesce(CAST(sum(",
            $octets,
            ") AS BIGINT), 0) AS open_bytes FROM approvals WHERE status IN ('pending', 'approved') AND coalesce(agent_id, '') = $1"
        )
    };
}
pub(super) use open_bytes;

/// The first of them, if there is one.
pub(super) fn first(rows: &[Row]) -> Result<Option<Approval>, DatabaseError> {
    rows.first().map(|row| read(row, whole(row)?)).transpose()
}

/// Returns true if the stored arguments are complete: earlier versions truncated them.
pub(super) fn is_whole(approval: &Approval) -> bool {
    !approval.is_preview && sha256(approval.arguments.to_string().as_bytes()) == approval.arguments_sha256
}

/// Returns an approval with its number in the order of asking.
pub(super) fn numbered(row: &Row) -> Result<(u64, Approval), DatabaseError> {
    let bytes = row.count("arguments_bytes")?;
    let beginning = row.text("arguments")?;
    let arguments = match beginning.len() as u64 == bytes {
        true => whole(row)?,
        false => {
            let (shown, sha256) = (beginning.len(), row.text("arguments_sha256")?);
            let preview = format!("{beginning}… ({shown} of {bytes} bytes; sha256 {sha256})");
            StoredArguments { value: preview.into(), bytes, is_preview: true }
        }
    };
    Ok((row.count("number")?, read(row, arguments)?))
}

/// Stored arguments of a call.
struct StoredArguments {
    value: Json,
    bytes: u64,
    is_preview: bool,
}

fn whole(row: &Row) -> Result<StoredArguments, DatabaseError> {
    let bytes = row.text("arguments")?.len() as u64;
    Ok(StoredArguments { value: document(row, "arguments")?, bytes, is_preview: false })
}

fn read(row: &Row, arguments: StoredArguments) -> Result<Approval, DatabaseError> {
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
        arguments_bytes: arguments.bytes,
        arguments: arguments.value,
        is_preview: arguments.is_preview,
        scope: row.optional_text("scope")?.map(|text| parsed(&text)).transpose()?.unwrap_or_default(),
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
    parsed(&row.text(column)?)
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text).map_err(|error| unreadable(error.into()))
}

// === impl ApprovalRequest ===

impl ApprovalRequest {
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
