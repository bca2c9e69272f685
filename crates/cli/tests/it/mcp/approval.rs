//! Changes of a session that are written to the directory that it is a copy of.

use super::McpConversation;
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Returns the arguments that approve the session's current changes.
fn approve(talk: &mut McpConversation, session: &str) -> Value {
    let digest = talk.done("diff", &json!({ "session": session }))["digest"].clone();
    json!({ "session": session, "reviewed": digest, "confirm": true, "reason": "the test wants it" })
}

#[test]
fn approve_tool_is_available_only_if_enabled_at_server_start() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source", "--keep"]);
        let session = talk.open();
        talk.shell(&session, "echo after > file");
        let arguments = approve(&mut talk, &session);
        let (code, message) = talk.refused("approve", &arguments);
        assert_eq!(code, "permission_denied");
        let typed = message.split('`').nth(1).unwrap().to_owned();
        assert_eq!(typed, format!("belljar session commit {session}"));
        assert_eq!(world.read("source/file"), "before\n");
        drop(talk);
        // The reported command is the one that a person types.
        let words: Vec<_> = typed.split(' ').skip(1).collect();
        let _ = world.run(&words).succeeded();
        assert_eq!(world.read("source/file"), "after\n");
        let _ = world.run(&["session", "end", "--discard", &session]).succeeded();
    });
}

#[test]
fn approve_tool_needs_confirmation_and_reason_and_is_recorded() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source", "--allow-approve"]);
        let session = talk.open();
        talk.shell(&session, "echo after > file");
        let digest = &approve(&mut talk, &session)["reviewed"];
        for arguments in [
            json!({ "session": session, "reviewed": digest }),
            json!({ "session": session, "reviewed": digest, "confirm": true }),
            json!({ "session": session, "reviewed": digest, "confirm": "true", "reason": "a" }),
            json!({ "session": session, "reviewed": digest, "confirm": true, "reason": " " }),
        ] {
            assert_eq!(talk.refused("approve", &arguments).0, "guardrail_violated", "{arguments}");
        }
        assert_eq!(world.read("source/file"), "before\n");
        let arguments = approve(&mut talk, &session);
        let done = talk.done("approve", &arguments);
        assert_eq!(done["files"], json!([{ "path": "file", "change": "modified" }]));
        assert_eq!(world.read("source/file"), "after\n");
        let arguments = approve(&mut talk, &session);
        assert_eq!(talk.done("approve", &arguments)["files"], json!([]));
        drop(talk);
        let shown = world.run(&["audit", "show", "--kind", "tool_called", "--json"]).succeeded().stdout;
        assert!(shown.contains("\"reason\":\"the test wants it\""), "{shown}");
    });
}

#[test]
fn changes_that_gain_trust_cannot_be_approved_by_an_mcp_client() {
    let world = World::new(BELLJAR);
    world.write("source/.git/config", "[core]\n");
    world.write("source/file", "before\n");
    let hook = "mkdir -p .git/hooks; echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo after > file";
    let mut talk = McpConversation::begin(&world, &["--workspace", "source", "--allow-approve"]);
    let session = talk.open();
    talk.shell(&session, hook);
    let arguments = approve(&mut talk, &session);
    let (code, message) = talk.refused("approve", &arguments);
    assert!(code == "permission_denied" && message.contains(".git/hooks/pre-commit"), "{message}");
    let mut sly = approve(&mut talk, &session);
    sly["trust"] = json!([".git/hooks/pre-commit"]);
    assert_eq!(talk.refused("approve", &sly).0, "invalid_argument");
    assert_eq!(world.read("source/file"), "before\n", "all changes or none are applied");
    // The command line requires the same approval.
    assert_eq!(world.run(&["session", "commit", &session]).code, 3);
    drop(talk);
    let options = ["--workspace", "source", "--allow-approve", "--trust", ".git/"];
    let mut talk = McpConversation::begin(&world, &options);
    let session = talk.open();
    talk.shell(&session, hook);
    let arguments = approve(&mut talk, &session);
    talk.done("approve", &arguments);
    assert_eq!(world.read("source/file"), "after\n");
    assert!(world.path().join("source/.git/hooks/pre-commit").exists());
}

#[test]
fn approval_without_the_digest_of_the_current_changes_writes_nothing() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source", "--allow-approve"]);
        let session = talk.open();
        talk.shell(&session, "echo shown > file");
        let shown = approve(&mut talk, &session);
        talk.shell(&session, "echo never shown > file");
        let (code, message) = talk.refused("approve", &shown);
        assert!(code == "conflict" && message.contains("no longer those that were reviewed"), "{message}");
        for wrong in [json!(null), json!(""), json!("sha256:0"), json!("0".repeat(64))] {
            let mut arguments = shown.clone();
            arguments["reviewed"] = wrong;
            assert_eq!(talk.refused("approve", &arguments).0, "invalid_argument", "{arguments}");
        }
        let mut arguments = shown.clone();
        arguments.as_object_mut().unwrap().remove("reviewed");
        assert_eq!(talk.refused("approve", &arguments).0, "invalid_argument");
        assert_eq!(world.read("source/file"), "before\n");
        // The control: with the digest of the current changes.
        let arguments = approve(&mut talk, &session);
        talk.done("approve", &arguments);
        assert_eq!(world.read("source/file"), "never shown\n");
    });
}

#[test]
fn file_changed_by_another_program_meanwhile_is_not_overwritten() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let mut talk = McpConversation::begin(&world, &["--workspace", "source", "--allow-approve"]);
    let session = talk.open();
    talk.shell(&session, "echo after > file");
    world.write("source/file", "of another program\n");
    let arguments = approve(&mut talk, &session);
    let (code, message) = talk.refused("approve", &arguments);
    assert!(code == "conflict" && message.contains("file"), "{message}");
    assert_eq!(world.read("source/file"), "of another program\n");
}
