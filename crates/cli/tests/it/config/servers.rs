//! Servers in the configuration: which users on this machine are shown credentials, and how TLS authenticates the server.

use crate::BELLJAR;
use crate::models::KEY;
use belljar_testkit::node::{Node, script};
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::other_user::{UNKNOWN_USER, listen};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;

/// A server of another user, with its configuration.
struct OtherUserServer {
    url: String,
    heard: Receiver<String>,
}

// === impl OtherUserServer ===

impl OtherUserServer {
    /// Starts a server; `None` without root.
    fn start() -> Option<Self> {
        let (address, heard) = listen("127.0.0.1:0")?;
        Some(Self { url: format!("http://{address}"), heard })
    }

    /// Asserts that nothing was sent to it so far.
    #[track_caller]
    fn heard_nothing(&self) {
        let heard: String = self.heard.try_iter().collect();
        assert_eq!(heard, "");
    }

    /// Waits until it receives that text.
    #[track_caller]
    fn hears(&self, shown: &str) {
        let mut heard = String::new();
        until(|| {
            heard.extend(self.heard.try_iter());
            heard.contains(shown)
        });
    }
}

/// Returns a world with a file that contains the credential, and the file's path.
fn world_with_key() -> (World, String) {
    let world = World::new(BELLJAR);
    let key = world.write("key", format!("user:{KEY}"));
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    (world, key.display().to_string())
}

/// Returns the part of a configuration without and with the member `user`.
fn without_and_with_user() -> [String; 2] {
    [String::new(), format!(", user: {UNKNOWN_USER}")]
}

#[test]
fn credentials_are_sent_to_another_users_server_only_if_configured() {
    let name = "credentials_are_sent_to_another_users_server_only_if_configured";
    let Some(server) = OtherUserServer::start() else {
        return skip(name, "a server of another user needs root");
    };
    let (world, key) = world_with_key();
    let url = &server.url;
    for (user, is_shown) in without_and_with_user().iter().zip([false, true]) {
        let check = |shown: &str| if is_shown { server.hears(shown) } else { server.heard_nothing() };
        // A model provider.
        let config = format!(
            "inference:\n  providers: [{{name: house, kind: litellm, url: '{url}', credential: {{file: '{key}'}}{user}}}]\n  \
             models: [{{name: small, provider: house}}]\n"
        );
        world.write("config.yaml", config);
        let call =
            "curl -s \"$OPENAI_BASE_URL/chat/completions\" -d '{\"model\": \"small\", \"messages\": []}'";
        let ran = world.run(&["exec", "--model", "small", "--config", "config.yaml", "--", "sh", "-c", call]);
        assert_eq!(ran.stdout.contains("provider_of_other_user"), !is_shown, "{ran:?}");
        check(KEY);
        // An upstream proxy.
        let policy = format!(
            "rules: [{{host: pkgs.example, ports: [80]}}]\nproxy: {{url: '{url}', names: there, credential: {{file: '{key}'}}{user}}}\n"
        );
        world.write("policy.yaml", policy);
        let ran =
            world.run(&["exec", "--egress", "policy.yaml", "--", "curl", "-sf", "http://pkgs.example/"]);
        assert_ne!(ran.code, 0, "the server is no proxy: {ran:?}");
        check("Proxy-Authorization: Basic ");
        // A metrics server.
        let headers = format!("headers: {{authorization: {{prefix: 'Bearer ', secret: {{file: '{key}'}}}}}}");
        let config = format!("tools: {{metrics: [{{name: house, url: '{url}', {headers}{user}}}]}}\n");
        world.write(".config/belljar/config.yaml", config);
        let query = json!({ "source": "house", "query": "up" }).to_string();
        let ran = world.run(&["tools", "call", "query_metrics", &query, "--level", "elevated"]);
        assert_ne!(ran.code, 0, "the server has no metrics: {ran:?}");
        check(KEY);
        std::fs::remove_file(world.path().join(".config/belljar/config.yaml")).unwrap();
        // An MCP server.
        let config = format!(
            "mcp: {{servers: [{{name: house, transport: streamable_http, url: '{url}', {headers}{user}}}]}}\n"
        );
        let config = world.write("node.yaml", config).display().to_string();
        let node = Node::start(&world, &["--config", &config]);
        until(|| node.log().contains("connecting to an MCP server failed"));
        check(KEY);
        drop(node);
        // A trace collector.
        let config = format!("node: {{traces: {{endpoint: '{url}'{user}}}}}\n");
        let config = world.write("node.yaml", config).display().to_string();
        let headers = [("OTEL_EXPORTER_OTLP_HEADERS".to_owned(), format!("x-key={KEY}"))];
        let node = Node::start_with(&world, &["--config", &config], &headers);
        node.run(&script("true"));
        until(|| node.log().contains("traces don't arrive"));
        check(KEY);
    }
}

#[test]
fn messages_and_requests_go_to_another_users_server_only_if_configured() {
    let name = "messages_and_requests_go_to_another_users_server_only_if_configured";
    let Some(server) = OtherUserServer::start() else {
        return skip(name, "a server of another user needs root");
    };
    let (world, key) = world_with_key();
    let url = &server.url;
    for (user, is_sent) in without_and_with_user().iter().zip([false, true]) {
        let check = |shown: &str| if is_sent { server.hears(shown) } else { server.heard_nothing() };
        // A service of the node.
        let config = format!("node: {{managed_services: [{{id: main, type: pma, url: '{url}'{user}}}]}}\n");
        let config = world.write("node.yaml", config).display().to_string();
        let node = Node::start(&world, &["--config", &config]);
        let request = json!({ "version": 1, "method": "GET", "path": "/of-the-service" });
        let answered = node.post("/v1/worker/managed-services/main/proxy:http", &request);
        assert_ne!(answered.status, 200, "it closes each connection: {}", answered.json());
        check("/of-the-service");
        drop(node);
        // Callbacks to the node's own URL, and to a job's.
        let config = format!(
            "node: {{callback: {{url: '{url}/own', secret_file: '{key}', allowed_origins: ['{url}']{user}}}}}\n"
        );
        let config = world.write("node.yaml", config).display().to_string();
        let node = Node::start(&world, &["--config", &config]);
        let mut elsewhere = script("true");
        elsewhere["callback_url"] = json!(format!("{url}/of-the-job"));
        for (job, path) in [(script("true"), "/own"), (elsewhere, "/of-the-job")] {
            let tries = node.log().matches("callback").count();
            node.run(&job);
            until(|| node.log().matches("callback").count() > tries);
            check(path);
        }
        drop(node);
        // Channels.
        for kind in ["webhooks", "slack"] {
            let agents = "tool_access: {agents: [{name: ada, level: elevated, autonomy: full}]}";
            let config = format!(
                "{agents}\ntools: {{channels: {{{kind}: [{{name: team, url: '{url}/{kind}'{user}}}]}}}}\n"
            );
            world.write(".config/belljar/config.yaml", config);
            let message = json!({ "channel": "team", "subject": "Fire", "message": "Out" }).to_string();
            let ran = world.run(&["tools", "call", "send_external_message", &message, "--agent", "ada"]);
            assert_ne!(ran.code, 0, "the server closes each connection: {ran:?}");
            check(&format!("/{kind}"));
            std::fs::remove_file(world.path().join(".config/belljar/config.yaml")).unwrap();
        }
    }
}

/// Accepts connections like a PostgreSQL server, and prints for each whether it asked for TLS and named the role.
const DATABASE: &str = r#"
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '/authority.pem', sys.argv[1] + '/key.pem')
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    way, said = 'plain', connection.recv(4096)
    try:
        if said == bytes.fromhex('0000000804d2162f'):
            way = 'tls'
            connection.sendall(b'S')
            connection = context.wrap_socket(connection, server_side=True)
            said = connection.recv(4096)
        print(way, 'named' if b'reader' in said else 'silent', flush=True)
    except OSError:
        print(way, 'refused', flush=True)
    connection.close()
"#;

#[test]
fn database_login_is_sent_only_after_tls_verification_unless_disabled() {
    let world = World::new(BELLJAR);
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let authority = world.write("certificate/authority.pem", cert.pem()).display().to_string();
    world.write("certificate/key.pem", signing_key.serialize_pem());
    let mut server = Command::new("python3")
        .args(["-c", DATABASE])
        .arg(world.path().join("certificate"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let port = said.next().unwrap();
    let query = json!({ "database": "house", "query": "SELECT 1" }).to_string();
    for (more, expected) in [
        ("", "tls refused"),
        (&*format!(", ca: '{authority}'"), "tls named"),
        (", tls: false", "plain named"),
    ] {
        let config = format!(
            "tools: {{databases: {{postgres: [{{name: house, host: localhost, port: {port}, database: d, user: reader{more}}}]}}}}\n"
        );
        world.write(".config/belljar/config.yaml", config);
        let ran = world.run(&["tools", "call", "sql_query", &query, "--level", "elevated"]);
        assert_ne!(ran.code, 0, "the server is no database: {ran:?}");
        assert_eq!(said.next().unwrap(), expected, "{more}: {ran:?}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn channels_and_databases_follow_their_configuration_sections() {
    let (world, key) = world_with_key();
    let house = Orchestrator::start();
    let agents = "tool_access: {agents: [{name: ada, level: elevated, autonomy: full}]}";
    let call = |tools: &str, tool: &str, arguments: &serde_json::Value| {
        world.write(".config/belljar/config.yaml", format!("{agents}\ntools: {{{tools}}}\n"));
        let ran = world.run(&["tools", "call", tool, &arguments.to_string(), "--agent", "ada", "--json"]);
        ran.json()
    };
    // A webhook is signed, and a Slack channel gets Slack's format.
    let channels = format!(
        "channels: {{webhooks: [{{name: team, url: '{}', secret: {{file: '{key}'}}, audience: internal}}], slack: [{{name: ops, url: '{}'}}]}}",
        house.url("/team"),
        house.url("/ops"),
    );
    let message = |channel: &str| json!({ "channel": channel, "subject": "Fire", "message": "Out" });
    for (tool, channel) in [("send_notification", "team"), ("send_external_message", "ops")] {
        assert_eq!(call(&channels, tool, &message(channel))["status"], "ok", "{channel}");
    }
    // The control: there are separate tools for internal and external messages.
    assert_eq!(call(&channels, "send_external_message", &message("team"))["domain_code"], "not_found");
    let received = house.received();
    let [team, ops] = received.as_slice() else { panic!("{received:?}") };
    assert_eq!((team.path.as_str(), ops.path.as_str()), ("/team", "/ops"));
    assert_eq!((&team.body["subject"], &ops.body), (&json!("Fire"), &json!({ "text": "*Fire*\nOut" })));
    let is_signed = [team, ops].map(|one| one.header("webhook-signature").is_some());
    assert_eq!(is_signed, [true, false]);
    // A database is read-only unless it is configured as writable.
    let file = world.path().join("data/house.db");
    std::fs::create_dir(world.path().join("data")).unwrap();
    let make = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE t (a)')";
    assert!(Command::new("python3").args(["-c", make]).arg(&file).status().unwrap().success());
    let insert = json!({ "database": "house", "statement": "INSERT INTO t VALUES (1)" });
    let database =
        |more: &str| format!("databases: {{sqlite: [{{name: house, path: '{}'{more}}}]}}", file.display());
    world.write(".config/belljar/config.yaml", format!("{agents}\ntools: {{{}}}\n", database("")));
    let listed = world.run(&["tools", "list", "--agent", "ada"]).succeeded().stdout;
    assert!(listed.contains("sql_query") && !listed.contains("sql_execute"), "{listed}");
    let done = call(&database(", writable: true"), "sql_execute", &insert);
    assert_eq!(done["status"], "ok", "{done}");
    let count = json!({ "database": "house", "query": "SELECT count(*) AS n FROM t" });
    assert_eq!(call(&database(""), "sql_query", &count)["data"]["rows"], json!([{ "n": 1 }]));
}
