//! Adds the ids of project, task and job to an agent's context (`docs/contracts/job.md#j9`).

use belljar_contract::worker::assignment::Assignment;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Adds a request's project and task to the job's context. Returns true if anything was added.
///
/// The job's own project text is kept, behind the project's id. A job without a task text gets one only if it has
/// requirements or acceptance criteria: otherwise the agent would take the added text for its task.
pub(super) fn add(context: &mut Map<String, Value>, assignment: &Assignment) -> bool {
    let has_project = assignment.project_id.as_ref().is_some_and(|project| {
        let given = text(context, "project_context");
        // A context file of the job is read only by the runner.
        let is_named = given.contains(project.as_str()) || given.starts_with(FILES);
        if !is_named {
            let with_id = format!("Project ID: {project}\n\n{given}");
            context.insert("project_context".to_owned(), with_id.trim_end().into());
        }
        !is_named
    });
    let (requirements, criteria) = (count(context, "requirements"), count(context, "acceptance_criteria"));
    let has_task = text(context, "task_context").trim().is_empty() && requirements + criteria > 0;
    if has_task {
        context.insert("task_context".to_owned(), of_task(assignment, requirements, criteria).into());
    }
    has_project || has_task
}

/// Folder of a job's context files.
const FILES: &str = "/job/context/";

fn of_task(assignment: &Assignment, requirements: usize, criteria: usize) -> String {
    let Assignment { task_id, job_id, task_category, .. } = assignment;
    let mut text = format!("Task ID: {task_id}\nJob ID: {job_id}\nStatus: in progress\n");
    if let Some(category) = task_category {
        // Writing to a text can't fail.
        let _ = writeln!(text, "Category: {}", category.as_str());
    }
    let _ =
        write!(text, "Requirements: {requirements}, acceptance criteria: {criteria}; all are listed below");
    text
}

fn text<'c>(context: &'c Map<String, Value>, name: &str) -> &'c str {
    context.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn count(context: &Map<String, Value>, name: &str) -> usize {
    context.get(name).and_then(Value::as_array).map_or(0, Vec::len)
}
