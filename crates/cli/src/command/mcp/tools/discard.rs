//! `discard`: what a session changed is undone in its copy.

use super::super::execution::CallerGoneSignal;
use super::super::failures;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{SHORT, SessionTool, SessionToolDescription, diff};
use belljar_contract::category::Category;
use belljar_tools::answer::{Answer, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "discard",
    summary: "Undoes what a session changed in its copy, everywhere or at some paths.",
    details: "What is outside of /workspace stays as it is.",
    category: Category::VersionControl,
    effect: Effect::Destructive,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Session id, as returned by `open`.
    session: String,
    /// Only what is at these paths of the workspace and below.
    #[schemars(length(max = 1000))]
    paths: Option<Vec<String>>,
    /// Also while programs run in the session.
    force: Option<bool>,
}

#[derive(Clone)]
pub(super) struct DiscardTool;

impl SessionTool for DiscardTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::Session(arguments.session)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, _: &CallerGoneSignal) -> Answer {
        let client = desk.find(&arguments.session)?;
        let paths: Vec<_> = arguments.paths.unwrap_or_default().into_iter().map(PathBuf::from).collect();
        let changes = client.discard(&paths, arguments.force.unwrap_or_default());
        Ok(Success::of(diff::files(&changes.map_err(|error| failures::of_session(&error))?)))
    }
}
