//! `help.*`: how things are done here, for agents that look it up.

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

/// A subject, what it is about in a line, and all of it.
type Topic = (&'static str, &'static str, &'static str);

/// What there is, in the order in which it is listed.
const TOPICS: &[Topic] = &[
    ("overview", "what a sandbox has and how its tools answer", include_str!("help/overview.md")),
    ("artifacts", "keeping files after the sandbox is gone", include_str!("help/artifacts.md")),
    ("memory", "keeping notes for the job", include_str!("help/memory.md")),
    ("skills", "conventions and knowledge for the task", include_str!("help/skills.md")),
    ("web", "pages and searches, where the job may reach the web", include_str!("help/web.md")),
    ("api", "calls of services by the host's own credentials", include_str!("help/api.md")),
];

/// Which subject.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    /// The task that this is asked for.
    #[expect(dead_code, reason = "it is held against the caller's before")]
    task_id: Option<TaskId>,
    /// One of those that `help.list` names; `overview` if none is named.
    topic: Option<String>,
}

/// Which part of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// So many are passed over.
    offset: Option<usize>,
    /// So many follow at most.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

struct Get;

struct List;

/// The tools.
///
/// # Errors
/// None in truth: their names are names.
pub fn tools() -> Tools {
    let define = |name, summary, input| Definition::named(name, Category::Other, summary, input);
    let get = define("help.get", "Tells how things are done here.", schema_of::<GetArguments>())?;
    let list = define("help.list", "Lists what there is help about.", schema_of::<ListArguments>())?;
    Ok(vec![tool(get, Get), tool(list, List)])
}

impl TypedTool for Get {
    type Arguments = GetArguments;

    async fn call(&self, _: &Caller, arguments: GetArguments) -> Answer {
        let topic = arguments.topic.as_deref().unwrap_or("overview");
        let found = TOPICS.iter().find(|(name, ..)| *name == topic);
        let Some((name, _, text)) = found else {
            let all: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).collect();
            return Err(Failure::new(
                DomainCode::NotFound,
                format!("there is help about: {}", all.join(", ")),
            ));
        };
        Ok(Success::of(json!({ "topic": name, "content_type": "text/markdown", "content": text })))
    }
}

impl TypedTool for List {
    type Arguments = ListArguments;

    async fn call(&self, _: &Caller, arguments: ListArguments) -> Answer {
        let topics = TOPICS.iter().map(|(name, about, _)| json!({ "topic": name, "about": about }));
        Ok(Success::page(topics.collect(), Page::new(arguments.offset, arguments.limit)))
    }
}
