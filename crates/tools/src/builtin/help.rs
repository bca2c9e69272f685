//! `help.*`: help texts for agents.

use super::Tools;
use crate::answer::{Answer, Failure, Page, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::category::Category;
use belljar_contract::id::TaskId;
use belljar_contract::tool::DomainCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// A topic: its name, its subject in one line, and its text.
type Topic = (&'static str, &'static str, &'static str);

/// The topics, in the order of the list.
const TOPICS: &[Topic] = &[
    ("overview", "contents of a sandbox, and results of its tools", include_str!("help/overview.md")),
    ("artifacts", "storing files beyond the lifetime of the sandbox", include_str!("help/artifacts.md")),
    ("memory", "storing notes for the job", include_str!("help/memory.md")),
    ("skills", "conventions and knowledge for the task", include_str!("help/skills.md")),
    ("web", "web pages and searches, for jobs with network access", include_str!("help/web.md")),
    ("api", "API calls with the host's credentials", include_str!("help/api.md")),
];

/// The topic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// The task that the call belongs to.
    #[expect(dead_code, reason = "it was compared with the caller's task before")]
    task_id: Option<TaskId>,
    /// A topic that `help.list` names. Default: `overview`.
    topic: Option<String>,
}

/// The page of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Number of entries to skip.
    offset: Option<usize>,
    /// Maximum number of entries to return.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

struct GetTopicTool;

struct ListTopicsTool;

/// Returns the tools.
///
/// # Errors
/// Never: the names are valid.
pub fn tools() -> Tools {
    let define = |name, summary, input| Definition::named(name, Category::Other, summary, input);
    let get = define("help.get", "Returns help about a topic.", schema_of::<GetArguments>())?;
    let list = define("help.list", "Lists the help topics.", schema_of::<ListArguments>())?;
    Ok(vec![tool(get, GetTopicTool), tool(list, ListTopicsTool)])
}

impl TypedTool for GetTopicTool {
    type Arguments = GetArguments;

    async fn call(&self, _: &Caller, arguments: GetArguments) -> Answer {
        let topic = arguments.topic.as_deref().unwrap_or("overview");
        let found = TOPICS.iter().find(|(name, ..)| *name == topic);
        let Some((name, _, text)) = found else {
            let all: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).collect();
            return Err(Failure::new(
                DomainCode::NotFound,
                format!("unknown topic; available: {}", all.join(", ")),
            ));
        };
        Ok(Success::of(json!({ "topic": name, "content_type": "text/markdown", "content": text })))
    }
}

impl TypedTool for ListTopicsTool {
    type Arguments = ListArguments;

    async fn call(&self, _: &Caller, arguments: ListArguments) -> Answer {
        let topics = TOPICS.iter().map(|(name, about, _)| json!({ "topic": name, "about": about }));
        Ok(Success::page(topics.collect(), Page::new(arguments.offset, arguments.limit)))
    }
}
