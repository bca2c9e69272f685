//! Definitions of the tools for a model: in a fixed order, the agent's own after the steps.

use super::todo_calls::{ADD, REORDER, UPDATE};
use super::{FINISH, REPORT};
use crate::agent::conversation::Definition;
use belljar_contract::job::step::StepType;
use serde_json::{Value, json};

/// Returns the tools for working.
pub(in crate::agent) fn working() -> Vec<Definition> {
    let mut tools: Vec<Definition> = StepType::ALL.into_iter().map(step).collect();
    tools.extend([
        tool(
            ADD,
            "Adds items to the todo list, or splits one into parts.",
            &json!({
                "titles": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
                "part_of": { "type": "integer", "description": "Id of the parent item." },
                "reason": { "type": "string", "description": "Reason why the items are needed." },
            }),
            &["titles"],
        ),
        tool(
            UPDATE,
            "Sets the status of a todo list item.",
            &json!({
                "id": { "type": "integer" },
                "status": { "enum": ["open", "in_progress", "done", "dropped"] },
                "reason": { "type": "string", "description": "Reason; required to drop an item of the job." },
            }),
            &["id", "status"],
        ),
        tool(
            REORDER,
            "Reorders the items of the todo list.",
            &json!({ "order": { "type": "array", "items": { "type": "integer" }, "description": "All item ids, each exactly once." } }),
            &["order"],
        ),
        tool(
            FINISH,
            "Ends the work: everything is done, or (gave_up) cannot be done. Then the acceptance criteria are checked.",
            &json!({
                "summary": { "type": "string", "description": "Summary of the work done, or the reason for giving up." },
                "gave_up": { "type": "boolean" },
            }),
            &["summary"],
        ),
    ]);
    tools
}

/// Returns the tools for checking.
pub(in crate::agent) fn checking() -> Vec<Definition> {
    let looks = [StepType::RunCommand, StepType::ReadFile, StepType::ListTree, StepType::SearchFiles];
    let mut tools: Vec<Definition> = looks.into_iter().map(step).collect();
    let result = json!({
        "type": "object",
        "properties": {
            "criterion": { "type": "integer", "description": "Number of the criterion." },
            "met": { "type": "boolean" },
            "evidence": { "type": "string", "description": "What you checked, and the observed result." },
        },
        "required": ["criterion", "met", "evidence"],
        "additionalProperties": false,
    });
    let results = json!({ "results": { "type": "array", "items": result } });
    tools.push(tool(
        REPORT,
        "Reports for each criterion whether it is met, with evidence.",
        &results,
        &["results"],
    ));
    tools
}

fn step(step_type: StepType) -> Definition {
    let path = || json!({ "type": "string", "description": "Relative to the workspace." });
    let (description, properties, required): (_, _, &[&str]) = match step_type {
        StepType::RunCommand => (
            "Runs a program in the workspace, without a shell, and returns its exit code and output.",
            json!({
                "argv": { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "The program and its arguments." },
                "cwd": path(),
                "timeout_seconds": { "type": "integer", "minimum": 1 },
            }),
            &["argv"],
        ),
        StepType::WriteFile => (
            "Writes a whole file; missing directories are created.",
            json!({ "path": path(), "content": { "type": "string" } }),
            &["path", "content"],
        ),
        StepType::ReadFile => (
            "Reads a file, or some of its lines.",
            json!({
                "path": path(),
                "start_line": { "type": "integer", "minimum": 1 },
                "end_line": { "type": "integer", "minimum": 1, "description": "Last line, inclusive." },
            }),
            &["path"],
        ),
        StepType::ApplyUnifiedDiff => (
            "Applies a unified diff in the format of `git diff`, completely or not at all.",
            json!({ "diff": { "type": "string" } }),
            &["diff"],
        ),
        StepType::ListTree => (
            "Lists files and directories.",
            json!({ "path": path(), "max_depth": { "type": "integer", "minimum": 1 }, "glob": { "type": "string" } }),
            &[],
        ),
        StepType::SearchFiles => (
            "Finds lines that match a regular expression.",
            json!({ "pattern": { "type": "string" }, "path": path(), "include": { "type": "string", "description": "A glob of file names." } }),
            &["pattern"],
        ),
    };
    tool(step_type.as_str(), description, &properties, required)
}

pub(super) fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Definition {
    let schema = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    Definition { name: name.to_owned(), description: description.to_owned(), schema }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::job::step::Action;

    #[test]
    fn step_tool_definitions_match_the_arguments_of_the_steps() {
        for step_type in StepType::ALL {
            let Definition { schema, .. } = step(step_type);
            let value = |name: &str, of: &Value| match of["type"].as_str() {
                Some("array") => json!(["true"]),
                Some("integer") => json!(2),
                _ => json!(if name == "diff" { "--- a/x\n+++ b/x\n" } else { "x" }),
            };
            let properties = schema["properties"].as_object().unwrap();
            let all: serde_json::Map<_, _> =
                properties.iter().map(|(name, of)| (name.clone(), value(name, of))).collect();
            let only: serde_json::Map<_, _> = all
                .iter()
                .filter(|(name, _)| schema["required"].as_array().unwrap().contains(&json!(name)))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            for arguments in [all.clone(), only.clone()] {
                let text = Value::from(arguments).to_string();
                Action::parse(step_type, text.as_bytes())
                    .unwrap_or_else(|problems| panic!("{text}: {problems}"));
            }
            for name in only.keys() {
                let mut less = only.clone();
                less.remove(name);
                assert!(
                    Action::parse(step_type, Value::from(less).to_string().as_bytes()).is_err(),
                    "{name}"
                );
            }
        }
    }
}
