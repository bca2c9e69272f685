//! `close`: a session ends.

use super::super::execution::CallerGoneSignal;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{SHORT, SessionTool, SessionToolDescription};
use belljar_contract::category::Category;
use belljar_tools::answer::{Answer, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "close",
    summary: "Ends a session, with everything in it.",
    details: "Changes that were not approved are kept for the operator of the server; no session can see them.",
    category: Category::CodeExecution,
    effect: Effect::Destructive,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
}

#[derive(Clone)]
pub(super) struct CloseTool;

impl SessionTool for CloseTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, _: &CallerGoneSignal) -> Answer {
        let is_kept = desk.close(&arguments.session)?;
        Ok(Success::of(json!({ "closed": arguments.session, "changes_kept": is_kept })))
    }
}
