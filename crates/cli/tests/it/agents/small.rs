//! Agents of a few lines, with scripted models.

use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The host's API key for providers.
pub(crate) const KEY: &str = "sk-host-7Qd2mX01vB9zKf4a";

/// A Python program that makes one model call.
pub(crate) const CALL: &str = "import json, os, urllib.request\n\
    body = {'model': os.environ['COGNI_MODEL'], 'messages': [{'role': 'user', 'content': 'hi'}]}\n\
    request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json.dumps(body).encode())\n\
    print(json.load(urllib.request.urlopen(request))['choices'][0]['message']['content'], flush=True)\n";

/// A world with models and one agent, `small`.
pub(crate) struct SmallAgentWorld<'w> {
    pub(crate) world: &'w World,
    pub(crate) server: ModelServer,
}

impl<'w> SmallAgentWorld<'w> {
    /// Returns a world whose agent is this command. Texts in braces are placeholders; literal braces are doubled.
    pub(crate) fn agent(world: &'w World, argv: &[&str]) -> Self {
        Self::row(
            world,
            &json!({ "name": "small", "description": "small", "reads_messages": true, "argv": argv }),
        )
    }

    /// Returns a world whose agent is this shell script, which has no placeholders.
    pub(crate) fn shell(world: &'w World, script: &str) -> Self {
        Self::agent(world, &["sh", "-c", &script.replace('{', "{{").replace('}', "}}")])
    }

    /// Returns a world whose agent is this Python program, which has no placeholders.
    pub(crate) fn python(world: &'w World, program: &str) -> Self {
        Self::agent(world, &["python3", "-c", &program.replace('{', "{{").replace('}', "}}")])
    }

    pub(crate) fn row(world: &'w World, agent: &Value) -> Self {
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        configure(world, &server, &json!([agent]));
        world.write("project/greeting.txt", "first line\nhello world\nlast line\n");
        Self { world, server }
    }

    /// Runs `belljar agent small` with these options on a copy of `project`, with the task to say hello.
    pub(crate) fn run(&self, options: &[&str]) -> ProgramOutput {
        ProgramOutput::from(self.command(options).output().unwrap())
    }

    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let all =
            ["agent", "small", "--workspace-copy", "project", "--model", "small", "--config", "config.yaml"];
        let told: &[&str] = if options.contains(&"--messages") { &[] } else { &["--", "say hello"] };
        self.world.command(&[&all[..], options, told].concat())
    }

    /// Runs the agent with `--json`, and returns its result document.
    pub(crate) fn json(&self, options: &[&str]) -> Value {
        self.run(&[&["--json"], options].concat()).json()
    }
}

/// Writes a configuration with the models `small` and `other`, and these agents.
pub(crate) fn configure(world: &World, server: &ModelServer, agents: &Value) {
    let key = world.write("key", KEY);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let config = json!({
        "inference": {
            "providers": [{"name": "house", "kind": "litellm", "url": server.url(), "credential": {"file": key}}],
            "models": [{"name": "small", "provider": "house", "upstream": "scripted"},
                       {"name": "other", "provider": "house"}],
        },
        "agents": agents,
    });
    world.write("config.yaml", config.to_string());
}

/// Returns the audit records of this kind.
pub(crate) fn records(world: &World, kind: &str) -> Vec<Value> {
    let shown = world.run(&["audit", "show", "--kind", kind, "--json"]).succeeded();
    shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn agent_reaches_only_hosts_its_policy_allows_and_other_agents_reach_none() {
    let (world, server) = (World::new(crate::BELLJAR), crate::egress::HelloServer::start());
    let port = server.address.port();
    let rule = format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}");
    world.write("policy.yaml", format!("rules: [{rule}]"));
    let script = format!(
        "unset NO_PROXY no_proxy; curl -sS http://localhost:{port}/; curl -s http://localhost:1/ >&2; env | grep -ci ^http_proxy"
    );
    let small = SmallAgentWorld::shell(&world, &script);
    let ran = small.json(&["--egress", "policy.yaml"]);
    assert!(ran["content"].as_str().unwrap().starts_with("hello\n"), "{ran}");
    assert_eq!((&ran["web"]["passages"], &ran["web"]["denied"][0]["port"]), (&json!(1), &json!(1)), "{ran}");
    let told = small.run(&["--egress", "policy.yaml"]);
    assert!(told.stderr.contains("belljar: localhost:1 was denied (no_rule_for_port)"), "{told:?}");
    assert_eq!(records(&world, "egress").len(), 4);
    // The control.
    let without = small.json(&[]);
    assert_eq!((&without["stdout"], &without["web"]), (&json!("0\n"), &Value::Null), "{without}");
    assert_eq!(server.asked(), 2);
}
