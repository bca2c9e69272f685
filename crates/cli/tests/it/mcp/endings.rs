//! The start and the end of a server, and its leftovers.

use super::McpConversation;
use crate::BELLJAR;
use crate::session::{SessionCleanup, list};
use belljar_testkit::world::{ProgramOutput, World};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

#[test]
fn open_sessions_end_with_the_server_unless_they_are_kept() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        for (options, left) in [(&[][..], 0), (&["--keep"], 2)] {
            let mut talk = McpConversation::begin(world, options);
            let ids = [talk.open(), talk.open()];
            assert_eq!(list(world).len(), 2, "{ids:?}");
            assert_eq!(talk.end(), Some(0));
            assert_eq!(list(world).len(), left, "{options:?}");
        }
    });
}

#[test]
fn signalled_server_ends_at_once_with_its_running_commands() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let world = World::new(BELLJAR);
        let mut talk = McpConversation::begin(&world, &[]);
        let session = talk.open();
        let arguments = json!({ "session": session, "argv": ["sleep", "600"] });
        talk.begin_asking("tools/call", &json!({ "name": "exec", "arguments": arguments }));
        kill_process(talk.pid(), signal).unwrap();
        // Its standard input stays open.
        assert_eq!(talk.child.wait().unwrap().code(), Some(0), "{signal:?}");
        assert!(list(&world).is_empty());
    }
}

#[test]
fn server_ends_after_client_disconnect_or_invalid_messages() {
    let world = World::new(BELLJAR);
    assert_eq!(McpConversation::silent(&world, &[]).end(), Some(0));
    let run = |text: &str| {
        let mut command = world.command(&["mcp"]);
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        ProgramOutput::from(child.wait_with_output().unwrap())
    };
    let ran = run("hello\n\n{}\n{\"jsonrpc\":\"2.0\"\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.starts_with("{\"jsonrpc\":\"2.0\"")), "{ran:?}");
    let ran = run("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    assert!(
        ran.code == 125 && ran.stderr.contains("does not begin with a valid MCP initialization"),
        "{ran:?}"
    );
    assert_eq!(ran.stdout, "");
}

#[test]
fn requests_sent_before_the_client_closed_its_input_are_answered() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    let call = json!({ "name": "run", "arguments": { "shell": "sleep 0.3; echo done" } });
    talk.begin_asking("tools/call", &call);
    talk.input = None;
    let answer = talk.hear().unwrap();
    assert_eq!(answer["result"]["structuredContent"]["data"]["stdout"], "done\n", "{answer}");
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn every_call_is_recorded_and_shown_without_variables() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    talk.done("run", &json!({ "shell": "echo \"$PIN\"", "env": { "PIN": "hunter2" } }));
    talk.refused("open", &json!({ "directory": "/etc" }));
    let answer = talk.ask("tools/call", &json!({ "name": "sandbox.exec", "arguments": {} }));
    let envelope = &answer["result"]["structuredContent"];
    assert_eq!(envelope["domain_code"], "not_found", "{answer}");
    assert!(envelope["message"].as_str().unwrap().contains("there are: "), "{answer}");
    drop(talk);
    let shown = world.run(&["audit", "show"]).succeeded().stdout;
    let rows: Vec<_> = shown.lines().filter(|row| row.contains("  tool_")).collect();
    let ends = |row: &str, end: &str| row.contains(end);
    assert_eq!(rows.len(), 5, "{shown}");
    assert!(ends(rows[0], "tool_begun") && ends(rows[0], "run by operator"), "{shown}");
    assert!(ends(rows[1], "tool_called") && ends(rows[1], "success run by operator"), "{shown}");
    assert!(ends(rows[3], "denied (tool) open by operator"), "{shown}");
    assert!(ends(rows[4], "denied (unknown) sandbox.exec by operator"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(world.run(&["audit", "verify"]).succeeded().stdout.starts_with("intact"));
}

#[test]
fn print_config_prints_the_registration_of_each_client() {
    let world = World::new(BELLJAR);
    world.write("source/file", "");
    let print = |client: &str| {
        world.run(&["mcp", "--workspace", "source", "--print-config", client]).succeeded().stdout
    };
    let (program, source) = (world.program().display(), world.path().canonicalize().unwrap().join("source"));
    let line = format!("{program} mcp --workspace {}\n", source.display());
    assert_eq!(print("claude"), format!("claude mcp add belljar -- {line}"));
    assert_eq!(print("codex"), format!("codex mcp add belljar -- {line}"));
    let printed: serde_json::Value = serde_json::from_str(&print("json")).unwrap();
    let server = &printed["mcpServers"]["belljar"];
    assert_eq!(server["args"], json!(["mcp", "--workspace", source]));
    assert_eq!(server["command"], json!(world.program()));
}
