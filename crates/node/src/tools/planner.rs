//! Tools of planners: sandboxes, jobs and tasks of this node. They call the node's own endpoints, so both have the same rules.

mod approval;
mod endpoint_client;
mod files;
mod images;
mod job;
mod job_list;
mod sandbox;
mod task;

use crate::api::Api;
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::tool::{InvalidToolNameError, ToolScope};
use belljar_tools::Tool;
use belljar_tools::answer::{DEFAULT_LIMIT, LARGEST_LIMIT};
use belljar_tools::definition::{Definition, Effect};
use endpoint_client::{EndpointClient, EndpointTool};
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Interval at which added images are polled.
const LOOK: Duration = Duration::from_secs(5);

/// Returns all tools of planners. They hold the API weakly, so they end with the node.
pub(crate) fn tools(api: &Weak<Api>) -> Result<Vec<Arc<dyn Tool>>, InvalidToolNameError> {
    let desk = Arc::new(EndpointClient::new(Weak::clone(api)));
    let endpoints = [job::endpoints()?, sandbox::endpoints()?].into_iter().flatten();
    let mut all: Vec<Arc<dyn Tool>> =
        endpoints.map(|(definition, ask)| EndpointTool::tool(definition, ask, &desk)).collect();
    all.extend(task::tools(&desk)?);
    all.extend(files::tools(&desk)?);
    all.extend(images::tools(&desk)?);
    all.extend(approval::tools(&desk)?);
    all.push(job::events(&desk)?);
    all.push(job_list::tool(&desk)?);
    Ok(all)
}

/// Applies images that were added on any node, until it is stopped.
pub(crate) async fn follow_images(api: Arc<Api>, stop: CancellationToken) {
    loop {
        let round = async {
            if let Err(error) = images::follow(&api).await {
                tracing::warn!(error = crate::chain(&error), "can't read which images were added");
            }
            tokio::time::sleep(LOOK).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = round => {}
        }
    }
}

/// Defines a tool of planners.
fn define(name: &str, summary: &str, input: Value) -> Result<Definition, InvalidToolNameError> {
    let definition = Definition::named(name, Category::Other, summary, input)?;
    Ok(Definition { scope: ToolScope::Pm, ..definition })
}

/// Defines a tool that changes something, with its action type. Read-only tools need no approval.
fn changing(definition: Definition, effect: Effect, action: BuiltInAction) -> Definition {
    Definition { effect, action: ActionType::from(action), ..definition }
}

/// The schema of an object with these members, some of which are required.
fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

/// The schema of a list's arguments: these members, and the page.
fn list_of(properties: Value) -> Value {
    let mut properties = properties;
    properties["offset"] =
        json!({ "type": "integer", "minimum": 0, "description": "So many entries are passed over." });
    properties["limit"] = json!({
        "type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT,
        "description": format!("So many follow at most; {DEFAULT_LIMIT} unless it is said.")
    });
    object(&[], &properties)
}

/// The schema of a UUID.
fn id(about: &str) -> Value {
    const FORM: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
    json!({ "type": "string", "format": "uuid", "pattern": FORM, "description": about })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutating_planner_tools_are_never_marked_read_only() {
        let mut changing = 0;
        for tool in tools(&Weak::new()).unwrap() {
            let Definition { name, effect, action, .. } = tool.definition();
            assert_eq!(
                effect.is_change(),
                *action != ActionType::from(BuiltInAction::CodeRead),
                "{name}: {action}"
            );
            changing += usize::from(effect.is_change());
        }
        assert_eq!(changing, 9);
    }
}
