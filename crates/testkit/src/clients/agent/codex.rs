//! Codex: OpenAI's responses. It ignores `OPENAI_BASE_URL`. With the built-in provider it first tries a WebSocket, so
//! it gets a provider of its own.

use super::{Agent, Edit, McpServer, StartCommand, Task, texts};
use crate::models::{Dialect, ToolCall};
use serde_json::{Value, json};

pub(super) const AGENT: Agent = Agent {
    name: "codex",
    dialect: Dialect::OpenAi,
    program: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    start,
    edit,
    register,
    call,
};

fn start(task: &Task<'_>) -> StartCommand {
    let config = format!(
        "model = \"{}\"\nmodel_provider = \"belljar\"\ncheck_for_update_on_startup = false\n\n\
         [model_providers.belljar]\nname = \"belljar\"\nbase_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        task.model, task.base_url
    );
    // Its own sandbox can't be nested within another one.
    let unsealed = "--dangerously-bypass-approvals-and-sandbox";
    StartCommand {
        arguments: texts(["exec", "--skip-git-repo-check", unsealed, "--", task.prompt]),
        environment: vec![("OPENAI_API_KEY", task.key.to_owned())],
        home: vec![(".codex/config.toml", config)],
    }
}

fn register(start: &mut StartCommand, server: &McpServer<'_>) {
    let [program, arguments @ ..] = server.command else { return };
    let environment = server.environment.iter().map(|(name, value)| format!("{name} = {value:?}"));
    let environment = environment.collect::<Vec<_>>().join(", ");
    let described = format!(
        "\n[mcp_servers.{}]\ncommand = {program:?}\nargs = {arguments:?}\nenv = {{ {environment} }}\n",
        server.name
    );
    start.home.iter_mut().for_each(|(_, config)| config.push_str(&described));
}

fn edit(edit: &Edit<'_>) -> Vec<ToolCall> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let script = format!("s\u{1}{}\u{1}{}\u{1}", edit.old, edit.new);
    let command = format!("sed -i {} {}", quoted(&script), quoted(&edit.file.display().to_string()));
    vec![ToolCall::new("exec_command", json!({ "cmd": command }))]
}

fn call(server: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new(tool, arguments).within(&format!("mcp__{server}"))
}
