//! Context files of a job whose texts the node extends: their content is moved into the job's context first, so that
//! additions hide none of it.

use belljar_contract::worker::context_files::ContextFiles;
use serde_json::{Map, Value};

/// Text files, and their members of the context.
const TEXTS: [(&str, &str); 3] =
    [("project.md", "project_context"), ("task.md", "task_context"), ("additional.md", "additional_context")];

/// The file with preferences, and its member of the context.
const PREFERENCES: (&str, &str) = ("preferences.json", "preferences");

/// Puts the texts of these files into a context, unless the job sets the member itself. Returns true if there were any.
pub(super) fn put_into(context: &mut Map<String, Value>, files: &ContextFiles) -> bool {
    let mut has_any = false;
    for (file, member) in TEXTS {
        let is_absent = context.get(member).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty());
        if let Some(text) = files.get(file).filter(|_| is_absent) {
            context.insert(member.to_owned(), text.into());
            has_any = true;
        }
    }
    let (file, member) = PREFERENCES;
    let is_absent = context.get(member).and_then(Value::as_object).is_none_or(Map::is_empty);
    // The runner reports a file that can't be parsed.
    let read = files.get(file).and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    if let Some(preferences) = read.filter(|_| is_absent) {
        context.insert(member.to_owned(), preferences.into());
        has_any = true;
    }
    has_any
}
