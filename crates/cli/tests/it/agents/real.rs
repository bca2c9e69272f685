//! Coding agents from npm make a real edit in a sandbox, directed by a scripted model.

use super::small::{KEY, SmallAgentWorld, configure, records};
use crate::BELLJAR;
use belljar_testkit::clients::agent::{AGENTS, Agent, Edit};
use belljar_testkit::models::{ModelServer, Script};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const BEFORE: &str = "first line\nhello world\nlast line\n";

/// The program of each agent.
const PROGRAMS: [(&str, &str); 3] = [("claude-code", "claude"), ("codex", "codex"), ("opencode", "opencode")];

fn scripted(agent: &Agent) -> ModelServer {
    let file = Path::new("/workspace/greeting.txt");
    let edit = Edit { file, old: "hello world", new: "hello belljar" };
    ModelServer::start(Script::working(agent.edit(&edit), "It is done."))
}

/// Runs an agent on `project`. Its program is on `PATH`, as after an installation by npm.
fn run(world: &World, (agent, program): (&Agent, &Path), options: &[&str]) -> ProgramOutput {
    let name = PROGRAMS.iter().find(|(name, _)| *name == agent.name).unwrap().1;
    world.write("bin/here", "");
    let link = world.path().join("bin").join(name);
    let _ = std::fs::remove_file(&link);
    symlink(program, link).unwrap();
    let all =
        ["agent", agent.name, "--workspace-copy", "project", "--model", "small", "--config", "config.yaml"];
    let prompt = "greet belljar, \"not\" the world";
    let mut command = world.command(&[&all[..], options, &["--", prompt]].concat());
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", world.path().join("bin").display());
    ProgramOutput::from(command.env("PATH", path).env("HOST_SECRET", KEY).output().unwrap())
}

fn edits(name: &str, test: &str) {
    let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
    let program = match agent.program() {
        Ok(program) => program,
        Err(why) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    world.write("project/greeting.txt", BEFORE);
    let server = scripted(agent);
    configure(&world, &server, &json!([]));
    let before = world.picture("project");
    let ran = run(&world, (agent, &program), &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}\n{:#?}", server.requests());
    let result = ran.json();
    assert_eq!(world.picture("project"), before, "the project is unchanged without --apply");
    assert_eq!((&result["ok"], &result["finish_reason"]), (&json!(true), &json!("stop")), "{result:#}");
    assert!(result["content"].as_str().unwrap().contains("It is done."), "{result:#}");
    assert_eq!(result["files"], json!([{ "path": "greeting.txt", "change": "modified" }]), "{result:#}");
    let diff = result["diff"].as_str().unwrap();
    assert!(diff.contains("-hello world\n+hello belljar\n"), "{diff}");
    billed(&result, &server);
    recorded(&world, &result);
    sealed(&server, &ran);
}

/// Checks that every call that the model's server answered is billed exactly once.
fn billed(result: &Value, server: &ModelServer) {
    let usage = result["usage"].as_array().unwrap();
    let answered = server.requests().iter().filter(|request| request.operation().generates()).count();
    assert!(answered >= 2, "{result:#}");
    assert_eq!(usage.len(), answered, "{result:#}");
    let mut keys: Vec<&str> =
        usage.iter().map(|report| report["idempotency_key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), answered);
    for report in usage {
        assert_eq!(report["run_id"], result["run_id"]);
        assert_eq!(report["graph_id"], result["graph_id"]);
        assert_eq!((&report["billing_account_id"], &report["model"]), (&json!("local"), &json!("scripted")));
    }
    assert_eq!(result["totals"]["calls"], json!(answered));
}

/// Checks that the audit log has the whole run, and verifies up to the record that the result names.
fn recorded(world: &World, result: &Value) {
    let audit = &result["audit"];
    let anchor = format!("{}:{}", audit["last"], audit["head"].as_str().unwrap());
    let verified = world.run(&["audit", "verify", "--expect", &anchor]).succeeded();
    assert!(verified.stdout.starts_with("intact"), "{verified:?}");
    let [used, ended] = ["grant_used", "run_ended"].map(|kind| records(world, kind).pop().unwrap());
    assert_eq!((&used["run"], &used["sequence"]), (&result["run_id"], &audit["first"]));
    assert_eq!((&ended["run"], &ended["sequence"]), (&result["run_id"], &audit["last"]));
    assert_eq!(used["event"]["grant"]["subject"], "service:operator");
    assert_eq!((&ended["event"]["exit_code"], &ended["event"]["error_code"]), (&json!(0), &json!(null)));
}

/// Checks that the provider got the host's key, and that the agent's placeholder key was sent nowhere.
fn sealed(server: &ModelServer, ran: &ProgramOutput) {
    let of_host = format!("Bearer {KEY}");
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some(of_host.as_str()));
        assert_eq!(request.header("x-api-key"), None);
    }
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY));
}

#[test]
fn claude_code_edits_a_file_sealed() {
    edits("claude-code", "claude_code_edits_a_file_sealed");
}

#[test]
fn opencode_edits_a_file_sealed() {
    edits("opencode", "opencode_edits_a_file_sealed");
}

#[test]
fn codex_edits_a_file_sealed() {
    edits("codex", "codex_edits_a_file_sealed");
}

#[test]
fn terminal_output_shows_agent_text_actions_and_cost() {
    let agent = AGENTS.iter().find(|agent| agent.name == "codex").unwrap();
    let program = match agent.program() {
        Ok(program) => program,
        Err(why) => return skip("people_read_what_the_agent_says", &why),
    };
    World::as_everyone(BELLJAR, |world| {
        world.write("project/greeting.txt", BEFORE);
        let server = scripted(agent);
        configure(world, &server, &json!([]));
        let ran = run(world, (agent, &program), &["--apply"]).succeeded();
        assert_eq!(ran.stdout.trim_end().lines().last(), Some("It is done."), "{ran:?}");
        for told in [
            "+hello belljar",
            "· small  200 completed",
            "2 calls",
            "audit verify",
            "The changes are applied.",
        ] {
            assert!(ran.stderr.contains(told), "{told}: {ran:?}");
        }
        assert_eq!(world.read("project/greeting.txt"), BEFORE.replace("world", "belljar"));
        assert!(!world.path().join("project/.cogni").exists());
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    });
}

/// The smallest agent of the contract (`docs/contracts/agents.md#a6`): messages from the file, one call, one envelope.
const PROTOCOL: &str = r#"#!/usr/bin/env node
const fs = require("fs");
const answer = (text, error) => {
  console.log(JSON.stringify({ payloads: text ? [{ text }] : [], meta: { durationMs: 1, error } }));
  process.exit(error ? 1 : 0);
};
const model = process.env.COGNI_MODEL;
const messages = JSON.parse(fs.readFileSync("/workspace/.cogni/messages.json", "utf8"));
const body = JSON.stringify({ model, messages });
const headers = { "content-type": "application/json", "x-litellm-end-user-id": "another-user" };
fetch(process.env.OPENAI_API_BASE + "/v1/chat/completions", { method: "POST", headers, body })
  .then(async (response) => response.ok
    ? answer(require("tool-words").prefix + (await response.json()).choices[0].message.content, null)
    : answer("", { code: "llm_error", message: String(response.status) }))
  .catch((error) => answer("", { code: "llm_error", message: String(error) }));
"#;

#[test]
fn node_agent_with_the_protocol_gets_its_program_mounted() {
    let node = match belljar_testkit::clients::node() {
        Ok(node) => node,
        Err(why) => return skip("node_agent_with_the_protocol_gets_its_program_mounted", &why),
    };
    let world = World::new(BELLJAR);
    let row = json!({ "name": "small", "description": "small", "reads_messages": true, "argv": ["tool"] });
    let small = SmallAgentWorld::row(&world, &row);
    let tool = world.write("npm/lib/node_modules/tool/cli.js", PROTOCOL);
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    world.write("npm/lib/node_modules/tool-words/index.js", "exports.prefix = 'said: ';\n");
    world.write("npm/secret", KEY);
    std::fs::create_dir(world.path().join("bin")).unwrap();
    symlink("../npm/lib/node_modules/tool/cli.js", world.path().join("bin/tool")).unwrap();
    symlink(&node, world.path().join("bin/node")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    let run = |model: &str| {
        let options = ["--json", "--model", model];
        ProgramOutput::from(small.command(&options).env("PATH", &path).output().unwrap())
    };
    let result = run("other").succeeded().json();
    assert_eq!((&result["content"], &result["failure"]), (&json!("said: hello"), &json!(null)), "{result:#}");
    assert_eq!(result["usage"].as_array().map(Vec::len), Some(1));
    let request = &small.server.requests()[0];
    assert_eq!(request.header("x-litellm-end-user-id"), Some("local"), "the host sets the billed user");
    assert!(request.contains(b"say hello"));
    drop(small.server);
    let result = ProgramOutput::from({
        let all =
            ["agent", "small", "--model", "small", "--config", "config.yaml", "--json", "--", "say hello"];
        world.command(&all).env("PATH", &path).output().unwrap()
    });
    assert_eq!(result.code, 1, "{result:?}");
    let failure = &result.json()["failure"];
    assert_eq!((&failure["error"], &failure["code"]), (&json!("provider_unavailable"), &json!("llm_error")));
    assert_eq!(failure["message"], "502");
}
