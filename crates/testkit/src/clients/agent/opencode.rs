//! opencode: OpenAI's chat. It also requests a title.

use super::{Agent, Edit, McpServer, StartCommand, Task, texts};
use crate::models::{Dialect, ToolCall};
use serde_json::{Map, Value, json};

pub(super) const AGENT: Agent = Agent {
    name: "opencode",
    dialect: Dialect::OpenAi,
    program: "opencode-linux-x64/bin/opencode",
    start,
    edit,
    register,
    call,
};

fn start(task: &Task<'_>) -> StartCommand {
    let config = json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "lsp": false,
        "formatter": false,
        "permission": { "edit": "allow", "bash": "allow", "webfetch": "deny" },
        "provider": { "belljar": {
            // A provider that is built into its program; another one would be installed from npm.
            "npm": "@ai-sdk/openai-compatible",
            "name": "belljar",
            "options": { "baseURL": format!("{}/v1", task.base_url), "apiKey": task.key },
            "models": { task.model: { "name": task.model, "tool_call": true } },
        } },
    });
    let model = format!("belljar/{}", task.model);
    StartCommand {
        arguments: texts(["run", "--model", &model, "--", task.prompt]),
        environment: vec![
            // Its list of all models is on another host.
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_PURE", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
        ],
        home: vec![(".config/opencode/opencode.json", config.to_string())],
    }
}

fn register(start: &mut StartCommand, server: &McpServer<'_>) {
    let environment: Map<_, _> =
        server.environment.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let described =
        json!({ "type": "local", "command": server.command, "environment": environment, "enabled": true });
    for (_, config) in &mut start.home {
        let mut read: Value = serde_json::from_str(config).unwrap_or_default();
        read["mcp"] = json!({ server.name: described });
        *config = read.to_string();
    }
}

/// Returns the calls that edit a file. It must read the file first.
fn edit(edit: &Edit<'_>) -> Vec<ToolCall> {
    vec![
        ToolCall::new("read", json!({ "filePath": edit.file })),
        ToolCall::new("edit", json!({ "filePath": edit.file, "oldString": edit.old, "newString": edit.new })),
    ]
}

fn call(server: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(&format!("{server}_{tool}"), arguments)
}
