//! Web tools: they fetch pages for jobs with web access, under the policy and in the records of the job's own web; and parse
//! pages that the caller has.

mod failure;
mod fetch;
mod html;
pub mod reach;
mod reader;
mod request;
mod search;

use super::Tools;
use crate::Tool;
use crate::definition::{Definition, Effect};
use crate::typed::{schema_of, tool};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError};
use belljar_egress::api::ApiCaller;
use reach::WebHatch;
use reader::PageReader;
use serde_json::Value;
use std::sync::Arc;

/// The argument that names a caller's task.
const TASK: &str = "task_id";

/// Returns the tools for callers with a task and web access.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(hatch: &Arc<dyn WebHatch>, calls: &Arc<ApiCaller>) -> Tools {
    let search = Definition {
        description: search::DESCRIPTION.to_owned(),
        ..define("web.search", "Searches the web.", schema_of::<search::Arguments>())?
    };
    Ok(vec![
        request(hatch)?,
        fetch("web.fetch", schema_of::<fetch::Arguments>(), hatch)?,
        tool(search, search::WebSearchTool::new(Arc::clone(hatch), Arc::clone(calls))),
    ])
}

/// Returns the tools for callers without a task. Their names have no dots, which many clients reject.
///
/// # Errors
/// Never: the names are valid.
pub fn without_tasks(hatch: &Arc<dyn WebHatch>) -> Tools {
    let mut input = schema_of::<fetch::Arguments>();
    if let Some(properties) = input["properties"].as_object_mut() {
        properties.remove(TASK);
    }
    if let Some(required) = input["required"].as_array_mut() {
        required.retain(|name| name != TASK);
    }
    Ok(vec![request(hatch)?, fetch("web_fetch", input, hatch)?])
}

fn request(hatch: &Arc<dyn WebHatch>) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let definition = Definition {
        description: request::DESCRIPTION.to_owned(),
        action: ActionType::from(BuiltInAction::CommsExternal),
        // The effect of a request is up to the server, even if the method is nominally read-only.
        effect: Effect::Destructive,
        within: request::WITHIN,
        ..define("http_request", "Sends an HTTP request.", schema_of::<request::Arguments>())?
    };
    Ok(tool(definition, request::WebRequestTool::new(Arc::clone(hatch))))
}

fn fetch(name: &str, input: Value, hatch: &Arc<dyn WebHatch>) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let definition = Definition {
        description: fetch::DESCRIPTION.to_owned(),
        ..define(name, "Returns a web page as text.", input)?
    };
    Ok(tool(definition, fetch::WebFetchTool::new(Arc::clone(hatch), PageReader::new())))
}

/// Defines a tool that reaches out.
fn define(name: &str, summary: &str, input: Value) -> Result<Definition, InvalidToolNameError> {
    let definition = Definition::named(name, Category::Web, summary, input)?;
    Ok(Definition { cost: CostTier::Moderate, reaches_out: true, ..definition })
}

/// Returns the tool that parses a given page, without network access.
///
/// # Errors
/// Never: the name is valid.
pub fn offline() -> Tools {
    let summary = "Extracts text, links or metadata from HTML.";
    let definition =
        Definition::named("html_parser", Category::Web, summary, schema_of::<html::Arguments>())?;
    let definition = Definition {
        description: html::DESCRIPTION.to_owned(),
        action: ActionType::from(BuiltInAction::CodeRead),
        ..definition
    };
    Ok(vec![tool(definition, html::HtmlParserTool::new(PageReader::new()))])
}

#[cfg(test)]
mod tests {
    use super::reach::WebAccessRegistry;
    use super::*;
    use belljar_egress::upstream::names::NameSource;

    #[test]
    fn web_tools_require_task_id_only_for_callers_with_tasks() {
        let hatch: Arc<dyn WebHatch> = Arc::new(WebAccessRegistry::default());
        let calls = Arc::new(ApiCaller::start_with(NameSource::of_system()).unwrap());
        let all = tools(&hatch, &calls).unwrap();
        let task = |tools: &[Arc<dyn Tool>], name: &str| {
            let found = tools.iter().find(|tool| tool.definition().name.as_str() == name).unwrap();
            let input = &found.definition().input;
            let is_required = input["required"].as_array().unwrap().iter().any(|name| name == TASK);
            (is_required, input["properties"].get(TASK).map(|task| task["type"].clone()))
        };
        for name in ["web.fetch", "web.search"] {
            assert_eq!(task(&all, name), (true, Some("string".into())), "{name}");
        }
        assert_eq!(task(&without_tasks(&hatch).unwrap(), "web_fetch"), (false, None));
    }
}
