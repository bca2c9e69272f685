//! The server over HTTP: authentication, tokens, and permitted host names.

use crate::BELLJAR;
use crate::session::{SessionCleanup, list};
use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Stdio};

/// A server that is killed when this is dropped.
pub(crate) struct McpHttpServer {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    child: Child,
}

// === impl McpHttpServer ===

impl McpHttpServer {
    /// Starts a server at a free port, with a token that it creates.
    pub(crate) fn start(world: &World, options: &[&str]) -> Self {
        let all = [&["mcp", "--http", "127.0.0.1:0", "--token-file", "token"], options].concat();
        let mut child = world.command(&all).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = told.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).unwrap();
        let address = url.strip_suffix("/mcp").unwrap().parse().unwrap();
        Self { address, token: world.read("token").trim().to_owned(), child }
    }

    /// Ends it, and returns its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        self.child.wait().unwrap().code()
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Calls `run` with these additional headers, at that path.
    fn ask(&self, target: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let mut asked =
            HttpRequest::new("POST", target).header("Accept", "application/json, text/event-stream");
        for (name, value) in headers {
            asked = asked.header(name, value);
        }
        asked.json(call("run", &json!({ "argv": ["echo", "ran"] })).to_string()).send(self.address).unwrap()
    }
}

impl Drop for McpHttpServer {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

fn has_run(answered: &HttpResponse) -> bool {
    answered.status == 200
        && answered.json()["result"]["structuredContent"]["data"]["stdout"] == json!("ran\n")
}

#[test]
fn only_one_correct_bearer_token_header_is_accepted() {
    let world = World::new(BELLJAR);
    let server = McpHttpServer::start(&world, &[]);
    let (right, token) = (server.bearer(), server.token.clone());
    let other = format!("Bearer {}", token.chars().rev().collect::<String>());
    let upper = format!("Bearer {}", token.to_uppercase());
    let (longer, shorter) = (format!("{right}0"), &right[..right.len() - 1]);
    let (basic, bare) = (format!("Basic {token}"), token.clone());
    let (twice, listed) = (format!("{right} {token}"), format!("{right}, {right}"));
    let wrong: Vec<Vec<(&str, &str)>> = vec![
        vec![],
        vec![("Authorization", "")],
        vec![("Authorization", "Bearer")],
        vec![("Authorization", "Bearer ")],
        vec![("Authorization", &other)],
        vec![("Authorization", &upper)],
        vec![("Authorization", &longer)],
        vec![("Authorization", shorter)],
        vec![("Authorization", &basic)],
        vec![("Authorization", &bare)],
        vec![("Authorization", &twice)],
        vec![("Authorization", &listed)],
        vec![("Authorization", &right), ("Authorization", &right)],
        vec![("Authorization", &right), ("Authorization", &other)],
        vec![("Proxy-Authorization", &right)],
        vec![("X-Api-Key", &token)],
        vec![("Cookie", &token)],
    ];
    for headers in &wrong {
        refused(&server.ask("/mcp", headers), &format!("{headers:?}"));
    }
    for target in ["/mcp?access_token=", "/mcp?token=", "/mcp?a=b&access_token="] {
        let target = format!("{target}{token}");
        refused(&server.ask(&target, &[]), &target);
        refused(&server.ask(&target, &[("Authorization", &right)]), &target);
    }
    refused(&server.ask("/other", &[]), "unknown paths need the token, too");
    for header in [&right, &format!("bearer {token}"), &format!("BEARER  {token}")] {
        assert!(has_run(&server.ask("/mcp", &[("Authorization", header)])), "{header}");
    }
    assert_eq!(server.ask("/other", &[("Authorization", &right)]).status, 404);
    drop(server);
    let shown = world.run(&["audit", "show"]).succeeded().stdout;
    assert_eq!(shown.matches("tool_called").count(), 3, "only the authorized calls were made: {shown}");
    assert!(!shown.contains(&token));
}

#[track_caller]
fn refused(answered: &HttpResponse, how: &str) {
    assert_eq!(answered.status, 401, "{how}");
    let challenge = answered.header("www-authenticate").unwrap_or_default();
    assert!(challenge.starts_with("Bearer realm="), "{how}: {challenge}");
    assert!(!String::from_utf8_lossy(&answered.body).contains("ran"), "{how}");
}

#[test]
fn browser_origins_and_unknown_hosts_are_refused_even_with_the_token() {
    let world = World::new(BELLJAR);
    let server = McpHttpServer::start(&world, &["--host", "sandboxes.example"]);
    let right = server.bearer();
    let port = server.address.port();
    let other_port = format!("127.0.0.1:{}", port.wrapping_add(1));
    for host in ["evil.example", "127.0.0.1", &other_port, "sandboxes.example.evil.example", "0.0.0.0"] {
        let answered = server.ask("/mcp", &[("Authorization", &right), ("Host", host)]);
        assert!((400..500).contains(&answered.status), "{host}: {}", answered.status);
    }
    for origin in ["http://evil.example", "null", &format!("http://127.0.0.1:{port}")] {
        let answered = server.ask("/mcp", &[("Authorization", &right), ("Origin", origin)]);
        assert_eq!(answered.status, 403, "{origin}");
    }
    for host in [
        &format!("127.0.0.1:{port}"),
        &format!("localhost:{port}"),
        "sandboxes.example",
        "sandboxes.example:99",
    ] {
        assert!(has_run(&server.ask("/mcp", &[("Authorization", &right), ("Host", host)])), "{host}");
    }
}

#[test]
fn token_file_is_readable_only_by_its_owner() {
    World::as_everyone(BELLJAR, |world| {
        let server = McpHttpServer::start(world, &[]);
        let token = server.token.clone();
        assert_eq!(token.len(), 64, "{token}");
        let path = world.path().join("token");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        drop(server);
        let server = McpHttpServer::start(world, &[]);
        assert_eq!(server.token, token, "the token stays");
        drop(server);
        let start = || world.run(&["mcp", "--http", "127.0.0.1:0", "--token-file", "token"]);
        for mode in [0o640, 0o604, 0o660, 0o700] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let ran = start();
            let says_why = ["chmod 600", "mode 600"].iter().any(|told| ran.stderr.contains(told))
                || ran.stderr.contains("other users can write");
            assert!(ran.code == 125 && says_why, "{mode:o}: {ran:?}");
        }
        std::fs::rename(&path, world.path().join("moved")).unwrap();
        std::fs::set_permissions(world.path().join("moved"), PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("moved", &path).unwrap();
        assert_eq!(start().code, 125, "a symlink is refused");
        std::fs::remove_file(&path).unwrap();
        world.write("token", "short\n");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let ran = start();
        assert!(ran.code == 125 && ran.stderr.contains("holds no token"), "{ran:?}");
    });
}

#[test]
fn non_loopback_address_needs_an_explicit_option() {
    let world = World::new(BELLJAR);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let ran = world.run(&["mcp", "--http", address, "--token-file", "token"]);
        assert!(ran.code == 125 && ran.stderr.contains("--allow-remote"), "{address}: {ran:?}");
    }
    assert!(!world.path().join("token").exists());
    assert_eq!(world.run(&["mcp", "--http", "127.0.0.1:0"]).code, 125, "a token file is required");
    let all = ["mcp", "--http", "0.0.0.0:0", "--token-file", "token", "--allow-remote"];
    let mut child = world.command(&all).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("serving at http://0.0.0.0:")));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn terminated_server_cancels_calls_and_ends_its_sessions() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let mut server = McpHttpServer::start(&world, &[]);
    let ask = |name: &str, arguments: Value| {
        HttpRequest::new("POST", "/mcp")
            .header("Accept", "application/json, text/event-stream")
            .header("Authorization", &server.bearer())
            .json(call(name, &arguments).to_string())
    };
    let opened = ask("open", json!({})).send(server.address).unwrap().json();
    let session = opened["result"]["structuredContent"]["data"]["session"].clone();
    let long = ask("exec", json!({ "session": session, "argv": ["sleep", "600"] }));
    let address = server.address;
    let caller = std::thread::spawn(move || long.send(address));
    belljar_testkit::wait::until(|| list(&world).first().is_some_and(|session| session["running"] == 1));
    assert_eq!(server.end(), Some(0));
    assert!(list(&world).is_empty());
    drop(caller.join());
    let shown = world.run(&["audit", "show", "--kind", "tool_called"]).succeeded().stdout;
    assert!(shown.contains("cancelled exec by operator"), "{shown}");
}
