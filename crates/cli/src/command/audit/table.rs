//! Records as rows, for a person. What sandboxes have said in them never acts on the terminal.

use crate::output::wrapped;
use crate::progress::harmless;
use belljar_contract::inference::{BEGUN, CALL, CallRecord, CallStartRecord, Excerpt};
use belljar_contract::tool::{TOOL_BEGUN, TOOL_CALLED, ToolCallRecord, ToolDecision, ToolStatus};
use belljar_store::audit::Record;

/// The first row.
pub(super) const HEAD: &str = "RECORD    TIME                         RUN                                   KIND                  WHAT\n";

/// Before each further line of a record.
const INDENT: &str = "          ";

/// The row of a record, without its newline. What is longer than the terminal is wide goes on in lines that begin with blanks, so no part
/// of a record looks like the beginning of another one.
pub(super) fn row(record: &Record<'_>, width: usize) -> String {
    let Record { sequence, time, kind, run, event, .. } = record;
    let told = match *kind {
        CALL => serde_json::from_str(event).ok().map(|call| summary(&call)),
        BEGUN => serde_json::from_str(event).ok().map(|call| beginning(&call)),
        TOOL_BEGUN | TOOL_CALLED => serde_json::from_str(event).ok().map(|call| of_tool(&call)),
        _ => None,
    };
    let what = told.unwrap_or_else(|| (*event).to_owned());
    let run = run.unwrap_or("-");
    let row = plain(&format!("{sequence:<8}  {time}  {run:36}  {kind:20}  {what}"));
    match width {
        usize::MAX => row,
        width => wrapped(&row, width.saturating_sub(INDENT.len())).join(&format!("\n{INDENT}")),
    }
}

fn beginning(call: &CallStartRecord) -> String {
    let CallStartRecord { route, model, provider, request_bytes, .. } = call;
    let (method, path) = (route.method.as_str(), route.path.as_str());
    format!("{method} {path}, {} at {}, {request_bytes} bytes", model.as_str(), provider.as_str())
}

fn of_tool(call: &ToolCallRecord) -> String {
    let ToolCallRecord { tool_name, subject, decision, denied_by, status, error_type, duration_ms, .. } =
        call;
    let what = match (decision, status, error_type) {
        (ToolDecision::Deny, ..) => format!("denied ({}) ", denied_by.as_deref().unwrap_or("-")),
        (ToolDecision::Escalate, ..) => "put before a person ".to_owned(),
        (ToolDecision::Allow, _, Some(code)) => format!("{code} "),
        (ToolDecision::Allow, Some(ToolStatus::Success), None) => "success ".to_owned(),
        (ToolDecision::Allow, Some(ToolStatus::Error), None) => "error ".to_owned(),
        (ToolDecision::Allow, Some(ToolStatus::Cancelled), None) => "cancelled ".to_owned(),
        (ToolDecision::Allow, None, None) => String::new(),
    };
    let subject_id = subject.subject_id.as_ref().map_or(String::new(), |name| format!(", {name}"));
    let took = duration_ms.map_or(String::new(), |took| format!(", {took} ms"));
    format!("{what}{tool_name} by {}{subject_id}{took}: {}", subject.subject_type, call.arguments)
}

fn summary(call: &CallRecord) -> String {
    let text = |excerpt: &Option<Excerpt>| excerpt.as_ref().map_or("-", Excerpt::as_str).to_owned();
    let status = call.status.map_or("-".to_owned(), |status| status.to_string());
    let mut summary = format!(
        "{status} {}, {} {}, {}",
        call.outcome,
        call.route.method.as_str(),
        call.route.path.as_str(),
        text(&call.model_asked)
    );
    if call.provider.is_some() {
        summary += &format!(" as {} at {}", text(&call.model_used), text(&call.provider));
    }
    summary += &format!(", {} bytes in {} ms", call.response_bytes, call.total_ms);
    if let Some(usage) = &call.usage {
        let tokens = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
        summary += &format!(", {} + {} tokens", tokens(usage.input_tokens), tokens(usage.output_tokens));
        if let Some(cost) = &usage.cost_usd {
            summary += &format!(", {} USD", cost.as_str());
        }
    }
    summary
}

/// The text on one line, with escapes in place of everything that a terminal acts on, that reorders text or that can't be seen.
pub(crate) fn plain(text: &str) -> String {
    harmless(text)
}
