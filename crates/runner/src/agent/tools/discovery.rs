//! Calls for discovering the gateway's tools, if these are not all disclosed beforehand.

use super::definitions::tool;
use super::{ToolContext, ToolOutcome, read};
use crate::agent::conversation::Definition;
use crate::deadline::Deadline;
use crate::excerpt::within;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListToolsArguments {
    #[serde(default)]
    category: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadToolArguments {
    tool_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadResourceArguments {
    tool_name: String,
    resource_id: String,
}

pub(super) const LIST: &str = "list_tools";
pub(super) const LOAD: &str = "load_tool";
pub(super) const READ: &str = "load_tool_resource";

/// Returns the discovery tools that are useful here.
pub(in crate::agent) fn discovery(loads: bool, has_material: bool) -> Vec<Definition> {
    let name = || json!({ "type": "string", "description": "Name of the tool, as listed by `list_tools`." });
    let list = tool(
        LIST,
        "Lists the tools that can be loaded, one per line.",
        &json!({ "category": { "type": "string", "description": "List only tools of this category." } }),
        &[],
    );
    let load = tool(
        LOAD,
        "Loads a tool: returns its full definition and makes it callable.",
        &json!({ "tool_name": name() }),
        &["tool_name"],
    );
    let read = tool(
        READ,
        "Reads a resource of a tool, such as a guide.",
        &json!({ "tool_name": name(), "resource_id": { "type": "string", "description": "One of the tool's resources." } }),
        &["tool_name", "resource_id"],
    );
    let of_loading = [list, load].into_iter().filter(|_| loads);
    of_loading.chain([read].into_iter().filter(|_| loads || has_material)).collect()
}

// === impl ToolContext ===

impl ToolContext<'_> {
    /// Handles a discovery call; `None` for other calls.
    pub(super) fn discover(
        &mut self,
        tool: &str,
        arguments: &str,
        deadline: &Deadline<'_>,
    ) -> Option<ToolOutcome> {
        let (remote, room) = (&mut self.remote, self.room);
        Some(match tool {
            LIST => read(arguments, |ListToolsArguments { category }| {
                told(remote.list(category.as_deref()), room)
            }),
            LOAD => read(arguments, |LoadToolArguments { tool_name }| told(remote.load(&tool_name), room)),
            READ => read(arguments, |ReadResourceArguments { tool_name, resource_id }| {
                told(remote.read(&tool_name, &resource_id, deadline), room)
            }),
            _ => return None,
        })
    }

    /// Forwards a call to the gateway.
    pub(super) fn call_gateway(
        &mut self,
        tool: &str,
        arguments: &str,
        deadline: &Deadline<'_>,
    ) -> ToolOutcome {
        match self.remote.call(tool, arguments, deadline) {
            Ok(called) => ToolOutcome::Told { text: within(called.text, self.room), failed: called.is_error },
            Err(why) => told(Err(why), self.room),
        }
    }
}

fn told(outcome: Result<String, String>, room: usize) -> ToolOutcome {
    let failed = outcome.is_err();
    let text = outcome.unwrap_or_else(|why| why);
    ToolOutcome::Told { text: within(text, room), failed }
}
