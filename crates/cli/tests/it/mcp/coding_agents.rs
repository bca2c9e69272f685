//! Coding agents from npm, which run outside of a sandbox, work in sandboxes through the tools of `belljar mcp`, directed by
//! a scripted model.

use crate::BELLJAR;
use crate::session::list;
use belljar_testkit::clients::agent::{AGENTS, Agent, McpServer, Task};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the calls that the model makes, one after another.
fn calls(secret: &Path) -> Vec<(&'static str, Value)> {
    let shell = format!("sed -i s/world/belljar/ greeting.txt; cat {}", secret.display());
    vec![
        ("open", json!({})),
        ("exec", json!({ "session": "$session", "shell": shell })),
        ("diff", json!({ "session": "$session" })),
        (
            "approve",
            json!({
                "session": "$session",
                "reviewed": format!("sha256:{}", "0".repeat(64)),
                "confirm": true,
                "reason": "it was asked for",
            }),
        ),
    ]
}

/// Starts a model that makes those calls, with the session id from the first result.
fn scripted(agent: &'static Agent, secret: &Path) -> ModelServer {
    let calls = calls(secret);
    ModelServer::start(Script::from_fn(move |request| {
        let offered = request.json()["tools"].to_string();
        let results = request.tool_results();
        let session = results.iter().find_map(|result| session_in(&result.to_string()));
        // A request that offers no such tools is for a title or something similar.
        let next = calls.get(results.len()).filter(|_| offered.contains("belljar"));
        let answer = || match next {
            None => Answer::text("It is done."),
            Some((name, arguments)) => {
                let arguments =
                    arguments.to_string().replace("$session", session.as_deref().unwrap_or_default());
                let arguments = serde_json::from_str(&arguments).unwrap();
                Answer::tool(agent.call(("belljar", name), arguments))
            }
        };
        request.operation().generates().then(answer)
    }))
}

/// Returns the session id in a result, at any level of JSON escaping.
fn session_in(answer: &str) -> Option<String> {
    let after = answer.split_once("session\\")?.1;
    let from = after.find(|character: char| character.is_ascii_hexdigit())?;
    Some(after[from..].chars().take(36).collect())
}

fn run(world: &World, agent: &Agent, program: &Path, server: &ModelServer) -> ProgramOutput {
    let state = world.path().join("state").display().to_string();
    let command = [BELLJAR, "mcp", "--workspace", "project"];
    let belljar =
        McpServer { name: "belljar", command: &command, environment: &[("BELLJAR_STATE_DIR", &state)] };
    let url = server.url();
    let task = Task { base_url: &url, model: "scripted", key: "a-key-of-no-user", prompt: "greet belljar" };
    let start = agent.start_with(&task, &belljar);
    for (path, content) in &start.home {
        world.write(path, content);
    }
    let arguments: Vec<_> = start.arguments.iter().map(String::as_str).collect();
    let mut command = world.command_of(program, &arguments);
    ProgramOutput::from(command.envs(start.environment).output().unwrap())
}

fn works(name: &str, test: &str) {
    let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
    let program = match agent.program() {
        Ok(program) => program,
        Err(why) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    world.write("project/greeting.txt", "hello world\n");
    let before = world.picture("project");
    let secret = world.write("secret", "of the host's\n");
    let server = scripted(agent, &secret);
    let ran = run(&world, agent, &program, &server);
    let requests = server.requests();
    let results: Vec<_> =
        requests.last().map(belljar_testkit::models::Request::tool_results).unwrap_or_default();
    let told: Vec<_> = results.iter().map(Value::to_string).collect();
    assert_eq!(
        told.len(),
        calls(&secret).len(),
        "{ran:?}\n{told:#?}\n{:?}",
        requests.first().map(|request| request.json()["tools"].to_string())
    );
    assert!(told[1].contains("secret: No such file") && !told[1].contains("of the host's"), "{told:#?}");
    // The agent itself could have read it.
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "of the host's\n");
    assert!(told[2].contains("-hello world") && told[2].contains("+hello belljar"), "{told:#?}");
    assert!(told[3].contains("permission_denied") && told[3].contains("belljar session commit"), "{told:#?}");
    assert_eq!(world.picture("project"), before, "only a user applies the changes");
    assert!(list(&world).is_empty(), "the client's sessions ended with it");
    let shown = world.run(&["audit", "show", "--kind", "tool_called"]).succeeded().stdout;
    let rows = shown.lines().filter(|row| row.contains(" by operator")).count();
    assert_eq!(rows, calls(&secret).len(), "{shown}");
}

#[test]
fn claude_code_works_in_a_session() {
    works("claude-code", "claude_code_works_in_a_session");
}

#[test]
fn codex_works_in_a_session() {
    works("codex", "codex_works_in_a_session");
}

#[test]
fn opencode_works_in_a_session() {
    works("opencode", "opencode_works_in_a_session");
}
