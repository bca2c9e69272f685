//! The start and the end of a server, and its leftovers.

use super::Talk;
use crate::BELLJAR;
use crate::session::{Sessions, list};
use belljar_testkit::world::{Ran, World};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

#[test]
fn sessions_that_were_left_open_end_with_the_server_unless_they_are_kept() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = Sessions(world);
        for (options, left) in [(&[][..], 0), (&["--keep"], 2)] {
            let mut talk = Talk::begin(world, options);
            let ids = [talk.open(), talk.open()];
            assert_eq!(list(world).len(), 2, "{ids:?}");
            assert_eq!(talk.end(), Some(0));
            assert_eq!(list(world).len(), left, "{options:?}");
        }
    });
}

#[test]
fn a_server_that_is_told_to_ends_at_once_with_what_runs_in_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let world = World::new(BELLJAR);
        let mut talk = Talk::begin(&world, &[]);
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
fn one_whose_client_has_gone_without_a_word_or_talks_of_something_else_ends_too() {
    let world = World::new(BELLJAR);
    assert_eq!(Talk::silent(&world, &[]).end(), Some(0));
    let run = |text: &str| {
        let mut command = world.command(&["mcp"]);
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
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
fn what_was_asked_before_the_client_closed_its_end_is_answered() {
    let world = World::new(BELLJAR);
    let mut talk = Talk::begin(&world, &[]);
    let call = json!({ "name": "run", "arguments": { "shell": "sleep 0.3; echo done" } });
    talk.begin_asking("tools/call", &call);
    talk.input = None;
    let answer = talk.hear().unwrap();
    assert_eq!(answer["result"]["structuredContent"]["data"]["stdout"], "done\n", "{answer}");
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn every_call_is_recorded_and_shown_and_variables_are_not() {
    let world = World::new(BELLJAR);
    let mut talk = Talk::begin(&world, &[]);
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
fn it_prints_how_clients_are_told_of_it() {
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
