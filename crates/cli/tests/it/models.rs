//! Models in a sandbox are reachable through sockets of the host only.

use crate::BELLJAR;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::{ProgramOutput, User, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The provider's API key, which must not be visible inside.
pub(crate) const KEY: &str = "sk-host-4f9aB7zKd82QmX01";

/// Makes calls from inside: by each socket, and by a path that bypasses them.
const CALLS: &str = r#"
import http.client, json, os, socket, urllib.error, urllib.request
def call(base, path, body):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), {"Authorization": "Bearer inside"})
    try:
        return urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {json.load(error)['error']['code']}"
body = {"model": "small", "messages": [{"role": "user", "content": "hi"}]}
print("chat", json.loads(call(os.environ["OPENAI_BASE_URL"], "/chat/completions", body))["choices"][0]["message"]["content"])
print("base", "hello" in call(os.environ["OPENAI_API_BASE"], "/v1/chat/completions", body))
print("messages", "hello" in call(os.environ["ANTHROPIC_BASE_URL"], "/v1/messages", {**body, "max_tokens": 5}))
print("other", call(os.environ["OPENAI_BASE_URL"], "/chat/completions", {"model": "other"}))
class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["LLM_PROXY_SOCKET"])
local = Local("localhost")
local.request("GET", "/v1/models")
print("socket", [model["id"] for model in json.load(local.getresponse())["data"]])
print("ollama", [model["name"] for model in json.load(urllib.request.urlopen(os.environ["OLLAMA_HOST"] + "/api/tags"))["models"]])
try:
    socket.create_connection(("127.0.0.1", PORT), 2)
    print("past")
except OSError:
    print("sealed")
print("key", any("KEY" in value for value in os.environ.values()))
"#;

pub(crate) fn configure(world: &World, server: &ModelServer) -> String {
    world.write("key", KEY);
    std::fs::set_permissions(world.path().join("key"), PermissionsExt::from_mode(0o644)).unwrap();
    let key = world.path().join("key").display().to_string();
    let config = json!({"inference": {
        "providers": [{"name": "house", "kind": "litellm", "url": server.url(), "credential": {"file": key}}],
        "models": [{"name": "small", "provider": "house", "upstream": "gpt-4o-mini"},
                   {"name": "other", "provider": "house"}],
    }});
    world.write("config.yaml", config.to_string());
    world.path().join("config.yaml").display().to_string()
}

/// Returns the audit records of one kind.
pub(crate) fn recorded(audit: &Path, kind: &str) -> Vec<Value> {
    let files = std::fs::read_dir(audit).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|record| record["kind"] == kind).map(|record| record["event"].clone()).collect()
}

fn records(world: &World) -> Vec<Value> {
    recorded(&world.path().join("state/audit"), "inference_call")
}

#[test]
fn sandboxed_program_calls_only_allowed_models_on_every_socket() {
    World::as_everyone(BELLJAR, |world| {
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        let config = configure(world, &server);
        let script = CALLS.replace("PORT", &server.address().port().to_string()).replace("KEY", KEY);
        let ran =
            world.run(&["exec", "--model", "small", "--config", &config, "--", "python3", "-c", &script]);
        let expected = "chat hello\nbase True\nmessages True\nother 403 model_not_allowed\nsocket ['small']\n\
                        ollama []\nsealed\nkey False\n";
        assert_eq!(ran.stdout, expected, "{ran:?}");
        assert!(ran.stderr.contains("3 calls of models, "), "{ran:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        let of_host = format!("Bearer {KEY}");
        assert!(requests.iter().all(|request| request.header("authorization") == Some(of_host.as_str())));
        assert!(requests.iter().all(|request| !request.contains(b"inside")));
        let runs: Vec<String> = records(world).iter().map(|record| record["run_id"].to_string()).collect();
        assert!(runs.iter().all(|run| *run == runs[0]), "one sandbox is one run: {runs:?}");
        let results: Vec<Value> = records(world).iter().map(|record| record["outcome"].clone()).collect();
        assert_eq!(
            results.iter().filter(|outcome| **outcome == json!("completed")).count(),
            5,
            "{results:?}"
        );
        assert!(results.contains(&json!({"denied": {"reason": "model_not_allowed"}})), "{results:?}");
    });
}

#[test]
fn without_models_no_model_endpoint_listens_in_the_sandbox() {
    World::as_everyone(BELLJAR, |world| {
        let script = "import os, socket\nfor port in 8080, 11434:\n try: socket.create_connection(('127.0.0.1', port)); \
                      print('open')\n except ConnectionRefusedError: print('refused')\n\
                      print(os.path.exists('/llm-sock'), 'OPENAI_API_BASE' in os.environ)";
        let ran = world.run(&["exec", "--", "python3", "-c", script]).succeeded();
        assert_eq!(ran.stdout, "refused\nrefused\nFalse False\n");
        assert!(!world.path().join("state/audit").exists());
    });
}

#[test]
fn unusable_model_configuration_is_reported_before_anything_is_made() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let refused = |ran: &ProgramOutput, why: &str| {
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    };
    let run = |options: &[&str]| world.run(&[&["exec"], options, &["--", "true"]].concat());
    refused(&run(&["--model", "none", "--config", &config]), "has no model \"none\"; it has: other, small");
    refused(&run(&["--model", "small", "--config", "nowhere.yaml"]), "nowhere.yaml");
    refused(&run(&["--model", "small"]), "--config FILE");
    refused(
        &run(&["--model", "small", "--config", &config, "--backend", "subprocess"]),
        "the subprocess backend is not available: it has no hatches",
    );
    world.write("bad.yaml", "inference: {providers: [{name: a, kind: b}], models: []}");
    let mistaken = run(&["--model", "small", "--config", "bad.yaml"]);
    assert!(mistaken.code == 2 && mistaken.stderr.contains("1:"), "{mistaken:?}");
    assert_eq!(world.user(), User::Own);
    assert!(!world.path().join("state").exists());
}

/// Makes calls as fast as possible, many at a time on one connection, and counts the responses.
const FLOOD: &str = r#"
import json, socket
body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "\n\u001b[31m\"},{\"kind\":\"forged\""}]})
one = f"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Log: \u00e4%0a{{}}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode("latin-1")
connection = socket.create_connection(("127.0.0.1", 8080))
answers = 0
for _ in range(200):
    connection.sendall(one * 20)
    told = b""
    while told.count(b"HTTP/1.1 200") < 20:
        told += connection.recv(1 << 16)
    answers += 20
print(answers)
"#;

#[test]
fn each_of_thousands_of_model_calls_has_one_record() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let ran = world.run(&["exec", "--model", "small", "--config", &config, "--", "python3", "-c", FLOOD]);
    assert_eq!(ran.stdout, "4000\n", "{ran:?}");
    assert_eq!(server.request_count(), 4_000);
    let records = records(&world);
    assert_eq!(records.len(), 4_000);
    let ids: BTreeSet<String> = records.iter().map(|record| record["call_id"].to_string()).collect();
    assert_eq!(ids.len(), 4_000, "each call has its own id");
    let sent: BTreeSet<String> = server
        .requests()
        .iter()
        .map(|request| format!("{:?}", request.header("x-litellm-call-id").unwrap()))
        .collect();
    assert_eq!(sent, ids, "the provider gets the same ids");
    world.run(&["audit", "verify"]).succeeded();
}
