//! `open`: a session.

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
    name: "open",
    summary: "Opens a sealed sandbox that persists across commands, and returns its session id.",
    details: "It works at /workspace on a copy of a directory of the host: nothing that is done there changes the directory. \
        There is no network access, unless the operator of this server has allowed some.",
    category: Category::CodeExecution,
    effect: Effect::Additive,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Directory to copy into the workspace, one of those that the server was started with. Default: the first of them.
    #[schemars(length(min = 1, max = 4096))]
    directory: Option<String>,
}

#[derive(Clone)]
pub(super) struct OpenTool;

impl SessionTool for OpenTool {
    type Arguments = Arguments;

    fn place(arguments: Arguments) -> CallWorkspace {
        CallWorkspace::New(arguments.directory)
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, _: &CallerGoneSignal) -> Answer {
        let client = desk.open(arguments.directory.as_deref())?;
        let session = client.session();
        Ok(Success::of(json!({
            "session": session.id,
            "workspace": session.workspace,
            "reaches_the_web": session.reaches_the_web(),
            "ends_when_idle_for_seconds": session.idle_limit.as_secs(),
        })))
    }
}
