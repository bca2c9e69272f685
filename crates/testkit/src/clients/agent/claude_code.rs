//! Claude Code: Anthropic's messages. It begins with `HEAD /`, and asks with `?beta=true`.

use super::{Agent, Edit, Start, Task, texts};
use crate::models::{Dialect, ToolCall};
use serde_json::json;

pub(super) const AGENT: Agent = Agent {
    name: "claude-code",
    dialect: Dialect::Anthropic,
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    start,
    edit,
};

fn start(task: &Task<'_>) -> Start {
    let allowed = "Read,Edit,Write,Bash";
    Start {
        arguments: texts(["--print", "--model", task.model, "--allowedTools", allowed, "--", task.prompt]),
        environment: vec![
            ("ANTHROPIC_BASE_URL", task.base_url.to_owned()),
            ("ANTHROPIC_API_KEY", task.key.to_owned()),
            // No updates, no reports, no questions about them.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ],
        home: Vec::new(),
    }
}

/// It edits no file that it hasn't read.
fn edit(edit: &Edit<'_>) -> Vec<ToolCall> {
    vec![
        ToolCall::new("Read", json!({ "file_path": edit.file })),
        ToolCall::new(
            "Edit",
            json!({ "file_path": edit.file, "old_string": edit.old, "new_string": edit.new }),
        ),
    ]
}
