//! Coding agents make a real edit, directed by a scripted model.

use belljar_testkit::clients::agent::{AGENTS, Agent, Edit, Task};
use belljar_testkit::models::{ModelServer, Script};
use belljar_testkit::skip::skip;
use std::path::Path;
use std::process::{Command, Stdio};

const KEY: &str = "sk-not-a-secret";

/// Result of the agent, and the requests to its model.
struct AgentRun {
    file: String,
    output: String,
    server: ModelServer,
}

fn edit_with(agent: &Agent, program: &Path) -> AgentRun {
    let world = tempfile::tempdir().unwrap();
    let [home, workspace] = ["home", "workspace"].map(|name| world.path().join(name));
    std::fs::create_dir_all(&workspace).unwrap();
    let file = workspace.join("greeting.txt");
    std::fs::write(&file, "first line\nhello world\nlast line\n").unwrap();
    let edit = Edit { file: &file, old: "hello world", new: "hello belljar" };
    let server = ModelServer::start(Script::working(agent.edit(&edit), "It is done."));
    let url = server.url();
    let task = Task { base_url: &url, model: "scripted", key: KEY, prompt: "greet belljar, not the world" };
    let start = agent.start(&task);
    std::fs::create_dir_all(&home).unwrap();
    for (path, content) in &start.home {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let ran = Command::new(program)
        .args(&start.arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &home)
        .envs(start.environment.iter().map(|(name, value)| (*name, value)))
        .current_dir(&workspace)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let output = format!("{}: {}\n{}", ran.status, text(&ran.stdout), text(&ran.stderr));
    AgentRun { file: std::fs::read_to_string(file).unwrap(), output, server }
}

fn edits(name: &str, test: &str) {
    let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
    let program = match agent.program() {
        Ok(program) => program,
        Err(why) => return skip(test, &why),
    };
    let seen = edit_with(agent, &program);
    let requests = seen.server.requests();
    let asked: Vec<String> = requests
        .iter()
        .map(|request| {
            let target = format!("{} {}", request.method, request.target);
            format!("{target} offers {:?} after {:?}", request.offered_tools(), request.tool_results())
        })
        .collect();
    let told = format!("{}\nasked: {asked:#?}", seen.output);
    assert_eq!(seen.file, "first line\nhello belljar\nlast line\n", "{told}");
    assert!(seen.output.contains("It is done."), "{told}");
    assert!(seen.server.flawed().is_empty(), "{told}");
    assert!(requests.iter().any(|request| request.dialect() == agent.dialect), "{told}");
    assert!(requests.iter().any(|request| request.contains(KEY.as_bytes())), "{told}");
}

#[test]
fn claude_code_edits_a_file() {
    edits("claude-code", "claude_code_edits_a_file");
}

#[test]
fn opencode_edits_a_file() {
    edits("opencode", "opencode_edits_a_file");
}

#[test]
fn codex_edits_a_file() {
    edits("codex", "codex_edits_a_file");
}
