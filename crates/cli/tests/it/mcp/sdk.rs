//! The official Python SDK as a client, in both families of protocol revisions.

use super::http::McpHttpServer;
use crate::BELLJAR;
use crate::session::list;
use belljar_testkit::mcp::{client, told};
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// The SDK's modes, each with the negotiated revision.
const MODES: [(&str, &str); 2] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")];

fn calls() -> Value {
    json!([
        ["open", {}],
        ["exec", { "session": "$session", "shell": "cat file; echo after > file; exit 3" }],
        ["diff", { "session": "$session" }],
        ["read", { "session": "$session", "path": "none" }],
        ["run", { "argv": ["cat", "file"] }],
    ])
}

fn check(told: &Value, version: &str) {
    assert_eq!(told["version"], version, "{told:#}");
    assert_eq!(told["tools"].as_array().map(Vec::len), Some(11), "{told:#}");
    let [opened, ran, changed, missing, alone] = told["told"].as_array().unwrap().as_slice() else {
        panic!("{told:#}");
    };
    assert_eq!(opened["is_error"], false);
    let ran = &ran["envelope"]["data"];
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(3), &json!("before\n")), "{told:#}");
    let diff = changed["envelope"]["data"]["diff"].as_str().unwrap();
    assert!(diff.contains("-before\n+after\n"), "{diff}");
    assert_eq!(
        (&missing["is_error"], &missing["envelope"]["domain_code"]),
        (&json!(true), &json!("not_found"))
    );
    assert_eq!(alone["envelope"]["data"]["stdout"], "before\n");
}

#[test]
fn python_sdk_works_over_stdio() {
    for (mode, version) in MODES {
        let mut client = match client(mode) {
            Ok(client) => client,
            Err(why) => return skip("python_sdk_works_over_stdio", &why),
        };
        let world = World::new(BELLJAR);
        world.write("source/file", "before\n");
        let state = world.path().join("state");
        client.args(["--", BELLJAR, "mcp", "--workspace", "source"]);
        client.current_dir(world.path()).env("BELLJAR_STATE_DIR", state);
        check(&told(&mut client, &calls()), version);
        assert!(list(&world).is_empty(), "the server ended the client's session");
        assert_eq!(world.read("source/file"), "before\n");
    }
}

#[test]
fn python_sdk_works_over_http() {
    for (mode, version) in MODES {
        let mut client = match client(mode) {
            Ok(client) => client,
            Err(why) => return skip("python_sdk_works_over_http", &why),
        };
        let world = World::new(BELLJAR);
        world.write("source/file", "before\n");
        let server = McpHttpServer::start(&world, &["--workspace", "source"]);
        client.args([format!("http://{}/mcp", server.address), server.token.clone()]);
        check(&told(&mut client, &calls()), version);
        assert_eq!(list(&world).len(), 1, "any client with the token can use the session");
        drop(server);
        assert!(list(&world).is_empty());
    }
}
