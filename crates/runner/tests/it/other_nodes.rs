//! The runner in a container of another node, which names its servers by URLs of any kind.

mod servers;

use crate::agent::house::{AgentFixture, MODEL, call, done, finish, report, small_job};
use crate::scene::{RunOutcome, Scene, job, sh};
use belljar_testkit::models::{Answer, ModelServer, Request, Script};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};
use servers::{connecting_proxy, plain_proxy, tls_front};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// A server that answers reports with these statuses, one after the other, and then with 204.
fn listener(statuses: &'static [u16]) -> ModelServer {
    let count = AtomicUsize::new(0);
    ModelServer::start(Script::from_fn(move |_| {
        let status = statuses.get(count.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(204);
        Some(Answer::own(status, JSON, ""))
    }))
}

#[test]
fn reports_and_the_result_go_to_the_nodes_callback_url() {
    for (variable, script, status, result) in [
        ("SBA_JOB_STATUS_URL", "echo done", "completed", "success"),
        ("SBA_CALLBACK_URL", "exit 3", "failed", "failure"),
    ] {
        let (scene, server) = (Scene::new(), listener(&[]));
        std::fs::write(scene.beside("job.json"), job(vec![sh(script)]).to_string()).unwrap();
        let url = format!("{}/jobs/7/status?node=a", server.url());
        let ran = scene.ran(&scene.command().env(variable, url).output().unwrap());
        let heard = server.requests();
        assert_eq!(heard.len(), 2, "{}", ran.log);
        assert!(heard.iter().all(|request| request.target == "/jobs/7/status?node=a"));
        assert_eq!(heard[0].json()["status"], "in_progress");
        let last = heard[1].json();
        assert_eq!((&last["status"], &last["result"]["status"]), (&json!(status), &json!(result)));
        assert_eq!(last["result"], ran.result, "the result itself");
    }
}

#[test]
fn result_delivery_is_retried_on_server_errors_and_a_refusal_is_logged() {
    let (scene, server) = (Scene::new(), listener(&[204, 503, 429]));
    std::fs::write(scene.beside("job.json"), job(vec![sh("true")]).to_string()).unwrap();
    let url = format!("{}/cb", server.url());
    let ran = scene.ran(&scene.command().env("SBA_CALLBACK_URL", &url).output().unwrap());
    assert_eq!((ran.outcome(), server.request_count()), ("success", 4), "{}", ran.log);
    let (scene, server) = (Scene::new(), listener(&[204, 403]));
    std::fs::write(scene.beside("job.json"), job(vec![sh("true")]).to_string()).unwrap();
    let url = format!("{}/cb", server.url());
    let ran = scene.ran(&scene.command().env("SBA_CALLBACK_URL", &url).output().unwrap());
    assert_eq!((ran.exit_code, server.request_count()), (Some(0), 2), "{}", ran.log);
    assert!(ran.log.contains("the response status is 403"), "{}", ran.log);
}

#[test]
fn result_of_a_malformed_job_is_delivered() {
    let (scene, server) = (Scene::new(), listener(&[]));
    std::fs::write(scene.beside("job.json"), r#"{"job_id":"7"}"#).unwrap();
    let url = format!("{}/cb", server.url());
    let ran = scene.ran(&scene.command().env("SBA_JOB_STATUS_URL", &url).output().unwrap());
    assert_eq!(ran.exit_code, Some(2));
    let heard = server.requests();
    assert_eq!((heard.len(), &heard[0].json()["result"]["failure_code"]), (1, &json!("schema_validation")));
}

/// An answer of JSON-RPC to a request.
fn rpc(request: &Request, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result }).to_string()
}

/// A gateway of revision 2025-06-18: a handshake, a session, and a token.
fn older_gateway() -> ModelServer {
    ModelServer::start(Script::from_fn(|request| {
        if request.header("Authorization") != Some("Bearer token-of-the-sandbox") {
            return Some(Answer::own(401, JSON, ""));
        }
        let method = request.json()["method"].as_str().unwrap_or_default().to_owned();
        let has_session = request.header("Mcp-Session-Id") == Some("s-1");
        Some(match method.as_str() {
            "initialize" => {
                let headers = [("Content-Type", "application/json"), ("Mcp-Session-Id", "s-1")];
                let capabilities = json!({ "tools": {} });
                let server = json!({ "name": "older", "version": "1" });
                let greeted = json!({
                    "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server,
                });
                Answer::own(200, &headers, rpc(request, &greeted))
            }
            "notifications/initialized" if has_session => Answer::own(202, &[], ""),
            "tools/list" if has_session => {
                Answer::own(200, JSON, rpc(request, &json!({ "tools": [echo()] })))
            }
            "tools/call" if has_session => {
                let text = request.json()["params"]["arguments"]["text"].clone();
                let content = json!([{ "type": "text", "text": text }]);
                Answer::own(200, JSON, rpc(request, &json!({ "content": content })))
            }
            _ => Answer::own(
                400,
                JSON,
                r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#,
            ),
        })
    }))
}

/// A gateway of revision 2026-07-28, which requires a token: every request is self-contained, and there is no session.
fn newer_gateway() -> ModelServer {
    const REVISION: &str = "2026-07-28";
    ModelServer::start(Script::from_fn(|request| {
        if request.header("Authorization") != Some("Bearer token-of-the-sandbox") {
            return Some(Answer::own(401, JSON, ""));
        }
        let message = request.json();
        let method = message["method"].as_str().unwrap_or_default();
        let says_all = request.header("MCP-Protocol-Version") == Some(REVISION)
            && request.header("Mcp-Method") == Some(method)
            && message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == REVISION;
        let complete = |mut result: Value| {
            result["resultType"] = json!("complete");
            Answer::own(200, JSON, rpc(request, &result))
        };
        Some(match method {
            "server/discover" if says_all => {
                let server = json!({ "name": "newer", "version": "1" });
                complete(json!({
                    "supportedVersions": [REVISION], "capabilities": { "tools": {} }, "serverInfo": server,
                }))
            }
            "tools/list" if says_all => complete(json!({ "tools": [echo()] })),
            "tools/call" if says_all && request.header("Mcp-Name") == Some("text.echo") => {
                let text = message["params"]["arguments"]["text"].clone();
                complete(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            _ => Answer::own(
                400,
                JSON,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
            ),
        })
    }))
}

/// A tool that both gateways have.
fn echo() -> Value {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    json!({ "name": "text.echo", "description": "Echoes.", "inputSchema": schema })
}

/// An agent that calls the gateway's tool, and searches for the token in everything that its programs can see.
fn calling() -> AgentFixture {
    AgentFixture::with(vec![
        call("text_echo", json!({ "text": "hello from afar" })),
        call("run_command", json!({ "argv": ["sh", "-c", "env | grep -c TOKEN; cat /proc/$PPID/environ"] })),
        done(1),
        finish(),
        report(),
    ])
}

fn run_at(house: &AgentFixture, gateway: &ModelServer, token: Option<&str>) -> RunOutcome {
    let mut command = house.command(&small_job());
    command.env("SBA_MCP_GATEWAY_URL", format!("{}/mcp", gateway.url()));
    if let Some(token) = token {
        command.env("SBA_MCP_GATEWAY_TOKEN", token);
    }
    // Root reads the memory and the environment of any process.
    if rustix::process::geteuid().is_root() {
        for place in ["", "workspace", "job.json"].map(|name| house.scene.beside(name)) {
            std::os::unix::fs::chown(&place, Some(1000), Some(1000)).unwrap();
        }
        command.uid(1000).gid(1000);
    }
    house.scene.ran(&command.output().unwrap())
}

/// Runs the job with the token, which nothing in the sandbox shows; and without it, which the log reports.
fn tools_are_called_with_the_token_alone(gateway: &ModelServer) {
    let house = calling();
    let ran = run_at(&house, gateway, Some("token-of-the-sandbox"));
    assert_eq!(ran.outcome(), "success", "{}\n{}", ran.result, ran.log);
    let asked = house.asked();
    let said = asked[1].json()["messages"].to_string();
    assert!(said.contains("hello from afar"), "{said}");
    assert!(!asked.iter().any(|request| request.contains(b"token-of-the-sandbox")));
    // The controls: no token, and that of another sandbox.
    for token in [None, Some("token-of-another")] {
        let house = calling();
        let ran = run_at(&house, gateway, token);
        assert_eq!(ran.outcome(), "success", "{}\n{}", ran.result, ran.log);
        assert!(
            ran.log.contains("only its own tools") && ran.log.contains("MCP_GATEWAY_TOKEN"),
            "{}",
            ran.log
        );
        let said = house.asked()[1].json()["messages"].to_string();
        assert!(said.contains("there is no tool of that name"), "{said}");
    }
}

#[test]
fn older_gateway_gets_the_token_which_programs_cannot_see() {
    tools_are_called_with_the_token_alone(&older_gateway());
}

#[test]
fn newest_gateway_gets_the_token_which_programs_cannot_see() {
    let gateway = newer_gateway();
    tools_are_called_with_the_token_alone(&gateway);
    let methods: Vec<_> = gateway
        .requests()
        .iter()
        .map(|request| request.json()["method"].as_str().unwrap().to_owned())
        .collect();
    // A rejected caller must not cause a handshake.
    assert_eq!(
        methods,
        ["server/discover", "tools/list", "tools/call", "server/discover", "server/discover"]
    );
}

/// Answers of a model that does the small job.
fn working() -> Vec<Answer> {
    vec![done(1), finish(), report()]
}

#[test]
fn models_are_called_over_https_only_with_a_trusted_certificate() {
    let house = AgentFixture::with(working());
    let front = tls_front(house.server.address(), "localhost");
    let run = |authority: &std::path::Path| {
        let mut command = house.command(&small_job());
        command.env("OPENAI_BASE_URL", format!("https://localhost:{}/v1", front.address.port()));
        command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
        house.scene.ran(&command.output().unwrap())
    };
    // The control first: a certificate authority that has not signed the certificate.
    let other = tls_front(house.server.address(), "localhost");
    let refused = run(&other.authority);
    assert_eq!(refused.outcome(), "inference_unavailable", "{}", refused.result);
    assert!(
        refused.result["failure_message"].as_str().unwrap().contains("certificate"),
        "{}",
        refused.result
    );
    let ran = run(&front.authority);
    assert_eq!(
        (ran.outcome(), &ran.result["agent"]["models"]),
        ("success", &json!([MODEL])),
        "{}",
        ran.result
    );
}

#[test]
fn named_servers_are_called_through_the_environments_proxy() {
    let house = AgentFixture::with(working());
    let proxy = plain_proxy(house.server.address(), "models.example");
    let mut command = house.command(&small_job());
    command.env("OPENAI_BASE_URL", "http://models.example/v1").env("HTTP_PROXY", format!("http://{proxy}"));
    let ran = house.scene.ran(&command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap());
    assert_eq!(ran.outcome(), "success", "{}\n{}", ran.result, ran.log);

    let house = AgentFixture::with(working());
    let front = tls_front(house.server.address(), "models.example");
    let proxy = connecting_proxy(front.address, "models.example:443");
    let mut command = house.command(&small_job());
    command.env("OPENAI_BASE_URL", "https://models.example/v1").env("HTTPS_PROXY", format!("http://{proxy}"));
    command.env("SSL_CERT_FILE", &front.authority).env_remove("SSL_CERT_DIR");
    let ran = house.scene.ran(&command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap());
    assert_eq!(ran.outcome(), "success", "{}\n{}", ran.result, ran.log);
}

#[test]
fn hostnames_in_the_hosts_file_are_resolved() {
    let house = AgentFixture::with(working());
    let port = house.server.address().port();
    let ordinary = house.command(&small_job());
    let hosts = house.scene.beside("hosts");
    std::fs::write(&hosts, "127.0.0.1 models.internal\n").unwrap();
    let script = "mount --bind \"$0\" /etc/hosts || exit 77; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(&hosts);
    command.arg(ordinary.get_program()).args(ordinary.get_args());
    command.env("OPENAI_BASE_URL", format!("http://models.internal:{port}/v1"));
    for proxy in ["HTTP_PROXY", "http_proxy"] {
        command.env_remove(proxy);
    }
    let output = command.output().unwrap();
    if matches!(output.status.code(), Some(77 | 1)) && !house.scene.beside("result.json").exists() {
        return skip("hostnames_in_the_hosts_file_are_resolved", "needs the right to mount");
    }
    let ran = house.scene.ran(&output);
    assert_eq!(ran.outcome(), "success", "{}\n{}", ran.result, ran.log);
}

#[test]
fn runner_refuses_to_run_as_root_with_a_hint_in_the_result() {
    let scene = Scene::new();
    if !rustix::process::geteuid().is_root() {
        return skip("runner_refuses_to_run_as_root_with_a_hint_in_the_result", "needs root");
    }
    std::fs::write(scene.beside("job.json"), job(vec![sh("touch ran")]).to_string()).unwrap();
    let ordinary = scene.command();
    let run = |uid: Option<u32>| {
        let mut command = Command::new(ordinary.get_program());
        command.args(ordinary.get_args().filter(|argument| *argument != "--allow-root"));
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        scene.ran(&command.output().unwrap())
    };
    let ran = run(None);
    assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "policy_violation"), "{}", ran.result);
    assert!(ran.result["failure_message"].as_str().unwrap().contains("--user 1000:1000"), "{}", ran.result);
    assert_eq!(ran.result["job_id"], crate::scene::JOB_ID);
    assert!(!scene.inside("ran").exists());
    // The control: another user.
    for place in [scene.beside(""), scene.beside("workspace")] {
        std::os::unix::fs::chown(&place, Some(1000), Some(1000)).unwrap();
    }
    assert_eq!(run(Some(1000)).outcome(), "success");
    assert!(scene.inside("ran").exists());
}
