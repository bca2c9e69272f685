//! `sessions`: those that there are.

use super::super::execution::CallerGoneSignal;
use super::super::mcp_sessions::McpSessions;
use super::super::scope::CallWorkspace;
use super::{SHORT, SessionTool, SessionToolDescription};
use belljar_contract::category::Category;
use belljar_sandbox::session::{SessionDescription, describe_all};
use belljar_tools::answer::{Answer, Page, Success};
use belljar_tools::definition::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const ABOUT: SessionToolDescription = SessionToolDescription {
    name: "sessions",
    summary: "Lists the open sessions and the state of each.",
    details: "Those that were opened by this server are listed, and those that it was given when it was started.",
    category: Category::CodeExecution,
    effect: Effect::ReadOnly,
    within: SHORT,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Number of sessions to skip.
    offset: Option<usize>,
    /// Maximum number of sessions to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Clone)]
pub(super) struct SessionsTool;

impl SessionTool for SessionsTool {
    type Arguments = Arguments;

    fn place(_: Arguments) -> CallWorkspace {
        CallWorkspace::Own
    }

    fn does(&self, desk: &McpSessions, arguments: Arguments, _: &CallerGoneSignal) -> Answer {
        // One that ends at this very moment is none any more.
        let told = describe_all(&desk.all()).iter().map(told).collect();
        Ok(Success::page(told, Page::new(arguments.offset, arguments.limit)))
    }
}

fn told(description: &SessionDescription) -> Value {
    let SessionDescription { session, running, idle_for, load } = description;
    json!({
        "session": session.id,
        "name": session.name,
        "workspace": session.workspace,
        "created_at": session.created_at,
        "running": running,
        "processes": load.as_ref().map(|load| load.processes),
        "idle_for_seconds": idle_for.as_secs(),
    })
}
