//! The gateway's tools, under names that models can call them by.
//!
//! MCP's names may have dots and other characters; names of models' functions have letters, digits, `_` and `-`. Names
//! are unique, and differ from those of the runner's own tools.

use super::conversation::Definition;
use crate::mcp::Tool;
use serde_json::{Map, Value};

/// All tools, in an order that doesn't depend on the gateway's.
#[derive(Debug, Default)]
pub(super) struct Toolbox {
    tools: Vec<GatewayTool>,
}

/// A tool of the gateway.
#[derive(Debug)]
pub(super) struct GatewayTool {
    pub(super) tool: Tool,
    /// Definition for models.
    pub(super) definition: Definition,
    /// Arguments that are filled in from the job, and hidden from the model.
    of_job: Vec<&'static str>,
}

/// The task and the job that tools work for.
#[derive(Debug, Clone, Default)]
pub(super) struct JobIds {
    pub(super) task: String,
    pub(super) job: String,
}

const LONGEST_NAME: usize = 64;
/// Prefix for tools that have the name of one of the runner's own.
const PREFIX: &str = "mcp_";
/// Prefixes of tools in whose catalogue `task_id` and `job_id` have a known meaning; in other tools they may mean
/// anything.
const CATALOGUE: [&str; 6] = ["api.", "artifact.", "help.", "memory.", "skills.", "web."];

// === impl Toolbox ===

impl Toolbox {
    /// Creates the toolbox of these tools, with names that differ from the runner's own.
    pub(super) fn of(mut tools: Vec<Tool>, own: &[&str]) -> Self {
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        let mut names: Vec<Option<String>> = vec![None; tools.len()];
        // Names that are valid already are assigned first, so that no adapted name takes them.
        for keeps in [true, false] {
            for (at, tool) in tools.iter().enumerate() {
                let plain = plain_name(&tool.name, own);
                if (plain == tool.name) == keeps {
                    names[at] = Some(unlike(&names, &plain));
                }
            }
        }
        let known = tools.into_iter().zip(names.into_iter().flatten());
        Self { tools: known.map(|(tool, name)| GatewayTool::new(tool, name)).collect() }
    }

    pub(super) fn tools(&self) -> &[GatewayTool] {
        &self.tools
    }

    /// Returns the index of a tool, by either of its names.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let by = |is_it: &dyn Fn(&GatewayTool) -> bool| self.tools.iter().position(is_it);
        by(&|known| known.definition.name == name).or_else(|| by(&|known| known.tool.name == name))
    }
}

/// Returns a name of allowed characters that differs from the runner's own.
fn plain_name(name: &str, own: &[&str]) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut plain: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if own.iter().any(|own| own.eq_ignore_ascii_case(&plain)) {
        plain.insert_str(0, PREFIX);
    }
    plain.truncate(LONGEST_NAME);
    plain
}

/// Returns the name, with a number appended if it is taken.
fn unlike(names: &[Option<String>], plain: &str) -> String {
    let is_taken = |name: &str| names.iter().flatten().any(|taken: &String| taken.eq_ignore_ascii_case(name));
    let (mut name, mut number) = (plain.to_owned(), 1);
    while is_taken(&name) {
        number += 1;
        let suffix = format!("_{number}");
        name = format!("{}{suffix}", &plain[..plain.len().min(LONGEST_NAME - suffix.len())]);
    }
    name
}

// === impl GatewayTool ===

impl GatewayTool {
    fn new(tool: Tool, name: String) -> Self {
        let mut schema = tool.schema.clone();
        let is_ours = CATALOGUE.iter().any(|namespace| tool.name.starts_with(namespace));
        let of_job = ["task_id", "job_id"].into_iter().filter(|id| is_ours && take_out(&mut schema, id));
        let of_job = of_job.collect();
        let definition = Definition { name, description: tool.description.clone(), schema };
        Self { tool, definition, of_job }
    }

    /// Returns the arguments of a call, in which the job's ids replace what the model has given.
    pub(super) fn arguments(&self, mut said: Map<String, Value>, ids: &JobIds) -> Value {
        for &name in &self.of_job {
            let id = if name == "task_id" { &ids.task } else { &ids.job };
            said.insert(name.to_owned(), id.clone().into());
        }
        said.into()
    }

    /// Returns the number of bytes of its definition.
    pub(super) fn size(&self) -> usize {
        let Definition { name, description, schema } = &self.definition;
        name.len() + description.len() + schema.to_string().len()
    }

    /// Returns its first sentence, on one line.
    pub(super) fn summary(&self, longest: usize) -> String {
        let text = self.tool.description.trim();
        let end = [text.find(". ").map(|at| at + 1), text.find('\n')].into_iter().flatten().min();
        let first = text[..end.unwrap_or(text.len())].chars().filter(|c| !c.is_control());
        let mut summary: String = first.take(longest + 1).collect();
        if summary.chars().count() > longest {
            summary = summary.chars().take(longest.saturating_sub(1)).chain(['…']).collect();
        }
        summary
    }
}

/// Removes a property from an object's schema; returns true if it was there.
fn take_out(schema: &mut Value, name: &str) -> bool {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let was_there = properties.is_some_and(|properties| properties.remove(name).is_some());
    if was_there && let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != name);
    }
    was_there
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::agent) fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object" }),
            is_read_only: false,
            category: name.split_once('.').map_or("unknown", |(category, _)| category).to_owned(),
            cost_tier: "unknown".to_owned(),
            resources: Vec::new(),
        }
    }

    fn names(tools: &[&str]) -> Vec<(String, String)> {
        let tools = tools.iter().map(|name| tool(name, "")).collect();
        let toolbox = Toolbox::of(tools, &["read_file", "finish"]);
        toolbox.tools().iter().map(|known| (known.tool.name.clone(), known.definition.name.clone())).collect()
    }

    #[test]
    fn every_tool_gets_a_unique_name_that_models_accept() {
        let long = format!("{}.{}", "a".repeat(60), "b".repeat(40));
        let other = format!("{}.{}", "a".repeat(60), "b".repeat(41));
        let all = [
            "artifact.put",
            "artifact_put",
            "artifact-put",
            "read_file",
            "read.file",
            "Finish",
            "ä ö",
            "ü ö",
            &long,
            &other,
        ];
        let named = names(&all);
        let name = |of: &str| named.iter().find(|(mcp, _)| mcp == of).unwrap().1.clone();
        assert_eq!(name("artifact_put"), "artifact_put", "a valid unique name is kept");
        assert_eq!(name("artifact.put"), "artifact_put_2");
        assert_eq!(name("artifact-put"), "artifact-put");
        assert_eq!(
            (name("read.file"), name("read_file")),
            ("mcp_read_file".to_owned(), "mcp_read_file_2".to_owned())
        );
        assert_eq!(name("Finish"), "mcp_Finish");
        for (_, name) in &named {
            assert!(
                (1..=64).contains(&name.len())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
                "{name}"
            );
            let same = named.iter().filter(|(_, other)| other.eq_ignore_ascii_case(name)).count();
            assert_eq!(same, 1, "{name}");
        }
        let mut turned = all;
        turned.reverse();
        assert_eq!(names(&turned), named, "in whatever order they come");
    }

    #[test]
    fn job_ids_are_filled_in_and_hidden_from_the_model() {
        let schema = json!({
            "type": "object",
            "properties": { "task_id": { "type": "string" }, "path": { "type": "string" } },
            "required": ["task_id", "path"],
        });
        let with = |name: &str| Tool { schema: schema.clone(), ..tool(name, "") };
        let toolbox = Toolbox::of(vec![with("artifact.get"), with("mcp_tracker_get")], &[]);
        let [ours, theirs] = toolbox.tools() else { panic!("two") };
        assert_eq!(ours.definition.schema["required"], json!(["path"]));
        assert_eq!(theirs.definition.schema, schema);
        let ids = JobIds { task: "t".to_owned(), job: "j".to_owned() };
        let said = json!({ "path": "p", "task_id": "of another" }).as_object().unwrap().clone();
        assert_eq!(ours.arguments(said.clone(), &ids), json!({ "path": "p", "task_id": "t" }));
        assert_eq!(theirs.arguments(said, &ids)["task_id"], "of another");
    }

    #[test]
    fn tool_summary_is_the_first_sentence_on_one_line() {
        let summary = |text: &str| GatewayTool::new(tool("a", text), "a".to_owned()).summary(20);
        assert_eq!(summary("Does it. And more."), "Does it.");
        assert_eq!(summary("Does it\nin two lines"), "Does it");
        assert_eq!(summary(&"ä".repeat(50)), format!("{}…", "ä".repeat(19)));
        assert_eq!(summary(""), "");
    }
}
