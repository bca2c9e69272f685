//! `belljar why`: by which rule a call was let through, refused, or put before a person.

use super::Subcommand;
use super::arguments::rows;
use super::audit::records_since;
use super::printing::print_json;
use crate::error::CliError;
use crate::progress::harmless;
use anstyle::Style;
use belljar_contract::tool::{TOOL_CALLED, ToolCallRecord, ToolDecision};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct WhyArguments {
    /// The decision, or the beginning of its id, as a refusal or the audit tells it
    decision: String,
    /// Print its record as JSON
    #[arg(long)]
    json: bool,
}

/// Exit code when there is no such decision, or several begin so.
const UNKNOWN: u8 = 2;

/// A beginning that is shorter says nothing.
const SHORTEST: usize = 4;

impl Subcommand for WhyArguments {
    const NAME: &'static str = "why";
    const ABOUT: &'static str =
        "Explain by which rule a tool call was allowed, denied, or put to a person for approval";

    fn run(&self) -> Result<ExitCode, CliError> {
        let begins = self.decision.to_ascii_lowercase();
        if begins.len() < SHORTEST {
            return Err(CliError::usage(format!("give at least {SHORTEST} characters of the decision's id")));
        }
        let mut found: Vec<(String, ToolCallRecord)> = Vec::new();
        records_since(None, TOOL_CALLED, &mut |_, event| {
            let Ok(record) = serde_json::from_str::<ToolCallRecord>(event) else { return };
            if record.call_id.to_string().starts_with(&begins) {
                found.push((event.to_owned(), record));
            }
        })?;
        match found.as_slice() {
            [(event, _)] if self.json => {
                let value: Value =
                    serde_json::from_str(event).map_err(|error| CliError::output(error.into()))?;
                print_json(&value)?;
                Ok(ExitCode::SUCCESS)
            }
            [(_, record)] => {
                crate::output::out!("{}", explained(record));
                Ok(ExitCode::SUCCESS)
            }
            several => {
                let what = if several.is_empty() { "no decision begins" } else { "several decisions begin" };
                crate::output::errln!(
                    "belljar: {what} with {}; `belljar audit show --kind {TOOL_CALLED} --json` has them all",
                    harmless(&self.decision)
                );
                Ok(ExitCode::from(UNKNOWN))
            }
        }
    }
}

fn explained(record: &ToolCallRecord) -> String {
    let head = Style::new().bold();
    let mut text = String::new();
    let verdict = match record.decision {
        ToolDecision::Allow => "was let through",
        ToolDecision::Deny => "was refused",
        ToolDecision::Escalate => "was put before a person",
    };
    let _ = writeln!(text, "{head}{}{head:#} {verdict}", harmless(&record.tool_name));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12} {}", harmless(value));
    };
    row("decision", &record.call_id.to_string());
    let subject = &record.subject;
    let subject_name = subject.subject_id.as_deref().unwrap_or_else(|| subject.subject_type.as_str());
    match &record.judged {
        Some(judged) => {
            row("agent", judged.agent_id.as_ref().map_or(subject_name, |agent| agent.as_str()));
            row("level", judged.level.as_str());
            row("action", &format!("{}, risk {}", judged.action_type, judged.risk));
            row("because", &judged.reason);
            row("rule", &judged.rule);
            row("generation", &judged.generation);
            judged.approval_id.iter().for_each(|id| row("approval", &id.to_string()));
            judged.proposal.iter().for_each(|least| row("would help", least));
        }
        None => {
            row("agent", subject_name);
            row("because", record.denied_by.as_deref().unwrap_or("no rule of agents is about it"));
        }
    }
    let length = (record.arguments_bytes, record.arguments_sha256.as_str(), record.is_preview);
    text + &rows(&record.arguments, length)
}
