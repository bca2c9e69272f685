//! Claude Code: Anthropic's messages. It begins with `HEAD /`, and asks with `?beta=true`.

use super::{Agent, Edit, McpServer, StartCommand, Task, texts};
use crate::models::{Dialect, ToolCall};
use serde_json::{Value, json};

pub(super) const AGENT: Agent = Agent {
    name: "claude-code",
    dialect: Dialect::Anthropic,
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    start,
    edit,
    register,
    call,
};

fn start(task: &Task<'_>) -> StartCommand {
    let allowed = "Read,Edit,Write,Bash";
    StartCommand {
        arguments: texts(["--print", "--model", task.model, "--allowedTools", allowed, "--", task.prompt]),
        environment: vec![
            ("ANTHROPIC_BASE_URL", task.base_url.to_owned()),
            ("ANTHROPIC_API_KEY", task.key.to_owned()),
            // Disables updates, telemetry, and questions about them.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ],
        home: Vec::new(),
    }
}

fn register(start: &mut StartCommand, server: &McpServer<'_>) {
    let environment: serde_json::Map<_, _> =
        server.environment.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let [program, arguments @ ..] = server.command else { return };
    let described = json!({ "type": "stdio", "command": program, "args": arguments, "env": environment });
    let config = json!({ "mcpServers": { server.name: described } });
    for argument in &mut start.arguments {
        if argument.starts_with("Read,") {
            *argument = format!("{argument},mcp__{}", server.name);
        }
    }
    start
        .arguments
        .splice(0..0, ["--mcp-config".to_owned(), config.to_string(), "--strict-mcp-config".to_owned()]);
    // All of its tools are sent at once, without tool search.
    start.environment.push(("ENABLE_TOOL_SEARCH", "false".to_owned()));
}

/// Returns the calls that edit a file. It must read the file first.
fn edit(edit: &Edit<'_>) -> Vec<ToolCall> {
    vec![
        ToolCall::new("Read", json!({ "file_path": edit.file })),
        ToolCall::new(
            "Edit",
            json!({ "file_path": edit.file, "old_string": edit.old, "new_string": edit.new }),
        ),
    ]
}

fn call(server: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(&format!("mcp__{server}__{tool}"), arguments)
}
