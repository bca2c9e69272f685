//! Documents to start from, and functions that invalidate them.

#![expect(clippy::needless_pass_by_value, reason = "documents are built where they are handed over")]

use belljar_contract::job::Job;
use belljar_contract::problem::Problem;
use serde_json::{Value, json};

/// A job with every member of every type, in the dialect of the later contract (`docs/contracts/job.md#j7`).
pub(crate) fn full_job() -> Value {
    json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "skill_id": "review",
        "persona": { "title": "Reviewer", "description": "You are a reviewer." },
        "persona_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d10",
        "constraints": {
            "max_runtime_seconds": 300,
            "max_output_bytes": 1_048_576,
            "ext_net_allowed": true,
            "allowed_commands": ["git"],
            "allowed_paths": ["src", "/workspace/docs"],
            "overwrite_allowed": true,
        },
        "inference": {
            "allowed_models": ["llama3.2"], "source": "worker", "max_turns": 20, "context_tokens": 16_384,
        },
        "context": {
            "baseline_context": "You review.",
            "project_context": "Belljar",
            "task_context": "Review the parser.",
            "requirements": ["No panics."],
            "acceptance_criteria": ["It reads well.", { "text": "Tests pass.", "check": { "argv": ["git", "diff"] } }],
            "preferences": { "style": { "width": 110 } },
            "additional_context": "Be brief.",
            "skill_ids": ["rust"],
            "skills": [{ "name": "rust" }],
        },
        "steps": [
            { "id": "status", "type": "run_command", "args": {
                "argv": ["git", "status"], "cwd": "src", "env": { "LC_ALL": "C" }, "timeout_seconds": 5,
            } },
            { "id": "write", "type": "write_file", "args": {
                "path": "src/a.rs", "content": "Zm4=", "encoding": "base64", "mode": "0644",
                "create_parents": false, "overwrite": false,
            } },
            { "id": "read", "type": "read_file", "args": {
                "path": "src/a.rs", "max_bytes": 100, "start_line": 1, "end_line": 2,
            } },
            { "id": "patch", "type": "apply_unified_diff", "args": { "diff": "--- a/x\n+++ b/x\n" } },
            { "id": "list", "type": "list_tree", "args": {
                "path": "src", "max_depth": 2, "glob": "*.rs", "max_entries": 10, "sizes": true,
            } },
            { "id": "find", "type": "search_files", "args": {
                "pattern": "fn", "path": "src", "include": "*.rs", "context_lines": 2, "max_matches": 10,
            } },
        ],
        "artifacts": ["src/a.rs"],
    })
}

/// Returns that job with the alternative names: `arguments`, `command`, `args`, `working_dir`, `network_allowed`.
pub(crate) fn full_job_in_the_older_dialect() -> Value {
    let mut job = full_job();
    rename(&mut job["constraints"], "ext_net_allowed", "network_allowed");
    job["steps"][0]["args"] = json!({
        "command": "git", "args": ["status"], "working_dir": "src", "env": { "LC_ALL": "C" }, "timeout_seconds": 5,
    });
    for step in job["steps"].as_array_mut().unwrap() {
        rename(step, "args", "arguments");
    }
    job
}

/// The smallest job.
pub(crate) fn small_job() -> Value {
    json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 1, "max_output_bytes": 1 },
        "steps": [],
    })
}

/// The smallest job with this one step.
pub(crate) fn job_with_step(step: Value) -> Value {
    with(&small_job(), "/steps", Value::Array(vec![step]))
}

/// The document with another value at a place that exists.
pub(crate) fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    *document.pointer_mut(pointer).unwrap() = value;
    document
}

/// The document without one member.
pub(crate) fn without(document: &Value, object: &str, name: &str) -> Value {
    let mut document = document.clone();
    document.pointer_mut(object).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    document
}

/// The document with one member more.
pub(crate) fn plus(document: &Value, object: &str, name: &str, value: Value) -> Value {
    let mut document = document.clone();
    let before =
        document.pointer_mut(object).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    assert_eq!(before, None, "{object} had {name} before");
    document
}

fn rename(object: &mut Value, from: &str, to: &str) {
    let members = object.as_object_mut().unwrap();
    let value = members.remove(from).unwrap();
    members.insert(to.to_owned(), value);
}

/// The document as text, with `name` twice in the object at `pointer`; [`Value`] itself can't hold that.
pub(crate) fn with_repeated(document: &Value, pointer: &str, name: &str) -> String {
    const MARK: &str = "\u{1}again";
    let value = document.pointer(pointer).unwrap()[name].clone();
    let marked = plus(document, pointer, MARK, value);
    let repeated = serde_json::to_string(&Value::from(name)).unwrap();
    marked.to_string().replace(&serde_json::to_string(MARK).unwrap(), &repeated)
}

/// The JSON path, as problems name it, of a JSON pointer.
pub(crate) fn path_of(pointer: &str) -> String {
    let steps = pointer.split('/').skip(1).map(|step| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    });
    format!("${}", steps.collect::<String>())
}

/// The problems of a document that must be refused.
#[track_caller]
pub(crate) fn problems(document: impl ToString) -> Vec<Problem> {
    let text = document.to_string();
    Job::parse(text.as_bytes()).expect_err(&text).problems.into_vec()
}

/// Asserts that the document is refused for exactly one thing, at `path`.
#[track_caller]
pub(crate) fn assert_refused_at(document: impl ToString, path: &str) {
    let text = document.to_string();
    let problems = problems(&text);
    assert_eq!(
        problems.iter().map(|problem| &problem.path).collect::<Vec<_>>(),
        [path],
        "{problems:?} in {text}"
    );
}

/// The job of a document that must be accepted.
#[track_caller]
pub(crate) fn accepted(document: impl ToString) -> Job {
    let text = document.to_string();
    Job::parse(text.as_bytes()).unwrap_or_else(|invalid| panic!("{invalid}\nin {text}"))
}
