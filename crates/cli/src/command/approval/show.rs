//! `belljar approval show`

use super::parse_id;
use super::source::ApprovalSource;
use crate::command::arguments::rows;
use crate::command::plain;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::approval::Approval;
use belljar_contract::id::ApprovalId;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt::Write;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// The approval's id
    #[arg(value_parser = parse_id)]
    id: ApprovalId,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self, source: &ApprovalSource) -> Result<(), CliError> {
        let approval = source.find(&self.id)?;
        match self.json {
            true => print_json(&approval),
            false => print(&description(&approval)),
        }
    }
}

/// A member of a scope, on one line.
pub(super) fn said(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An approval, with all of the arguments.
pub(super) fn description(approval: &Approval) -> String {
    let mut text = String::new();
    let mut say = |name: &str, value: &str| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {name:<12} {}", plain(value));
    };
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    say("approval", approval.id.as_str());
    say("status", approval.status.as_str());
    if let Some(agent) = &approval.agent_id {
        say("agent", agent.as_str());
    }
    say("tool", approval.tool.as_str());
    say("action", &format!("{}, risk {}", approval.action_type, approval.risk.as_str()));
    for (name, value) in &approval.scope {
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(member, value)| say(&format!("{name}.{member}"), &said(value)));
            }
            value => say(name, &said(value)),
        }
    }
    say("why", &approval.reason);
    say("decision", &approval.decision_id.to_string());
    say("asked", &time(approval.created_at));
    if let Some(expires_at) = approval.expires_at {
        say("expires", &time(expires_at));
    }
    if let Some(decision) = &approval.decision {
        say("decided", &format!("{} by {}", time(decision.decided_at), decision.decided_by));
        decision.decision_reason.iter().for_each(|reason| say("reason", reason));
    }
    if let Some(used_at) = approval.used_at {
        say("used", &time(used_at));
    }
    let length = (approval.arguments_bytes, approval.arguments_sha256.as_str(), approval.is_preview);
    text + &rows(&approval.arguments, length)
}
