//! Commands in sessions and in sandboxes of their own.

use super::McpConversation;
use crate::BELLJAR;
use crate::session::{create, list};
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn tool_list_is_the_documented_one_and_names_have_no_dots() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    let listed = talk.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["approve", "close", "diff", "discard", "exec", "list", "open", "read", "run", "sessions", "write"]
    );
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
    let approve = &tools[0];
    assert_eq!(approve["annotations"]["destructiveHint"], true);
    assert_eq!(approve["inputSchema"]["required"], json!(["session", "reviewed", "confirm", "reason"]));
    let diff = &tools[2];
    assert_eq!(diff["annotations"]["readOnlyHint"], true);
}

#[test]
fn session_persists_across_calls_and_the_directory_is_unchanged() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source", "-e", "GIVEN=value"]);
        let session = talk.open();
        let ran = talk.done(
            "exec",
            &json!({
                "session": session, "shell": "cat; cat file; echo \"$GIVEN $OWN\"; pwd; echo after > file; echo err >&2; exit 3",
                "stdin": "in\n", "env": { "OWN": "a 'b' $c", "count": "9", "x": "--" }, "cwd": "."
            }),
        );
        assert_eq!(
            (&ran["exit_code"], &ran["stdout"], &ran["stderr"], &ran["timed_out"]),
            (&json!(3), &json!("in\nbefore\nvalue a 'b' $c\n/workspace\n"), &json!("err\n"), &json!(false))
        );
        assert_eq!(talk.shell(&session, "cat file; echo ${OWN-none}"), "after\nnone\n");
        let changed = talk.done("diff", &json!({ "session": session }));
        assert_eq!(changed["files"], json!([{ "path": "file", "change": "modified" }]));
        assert!(changed["diff"].as_str().unwrap().contains("-before\n+after\n"), "{changed}");
        talk.done("discard", &json!({ "session": session }));
        assert_eq!(talk.shell(&session, "cat file"), "before\n");
        let listed = talk.done("sessions", &json!({}));
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["session"]), (1, &json!(session)));
        talk.done("close", &json!({ "session": session }));
        let (code, message) = talk.refused("exec", &json!({ "session": session, "argv": ["true"] }));
        assert!(code == "not_found" && message.contains("`open`"), "{code} {message}");
        assert_eq!(world.read("source/file"), "before\n");
        assert!(list(world).is_empty());
    });
}

#[test]
fn commands_run_sealed_without_access_to_host_files() {
    let world = World::new(BELLJAR);
    world.write("source/file", "here\n");
    let secret = world.write("secret", "of the host's\n");
    let server = crate::egress::HelloServer::start();
    let mut talk = McpConversation::begin(&world, &["--workspace", "source"]);
    let session = talk.open();
    let probe = format!(
        "cat file; cat {}; (echo GET / > /dev/tcp/127.0.0.1/{}) && echo reached",
        secret.display(),
        server.address.port()
    );
    let ran = talk.done("exec", &json!({ "session": session, "argv": ["bash", "-c", probe] }));
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("here\n"), &json!(1)), "{ran}");
    assert!(ran["stderr"].as_str().unwrap().contains("No such file"), "{ran}");
    // The control: these commands outside of a sandbox.
    let control = world.command_of("/bin/bash".as_ref(), &["-c", &probe]).output().unwrap();
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    assert!(control.contains("of the host's\n") && control.contains("reached\n"), "{control}");
}

#[test]
fn long_output_is_truncated_in_the_middle_and_slow_commands_are_killed() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    let session = talk.open();
    let long = json!({ "session": session, "argv": ["seq", "1", "1000000"], "output_bytes": 256 });
    let ran = talk.done("exec", &long);
    let stdout = ran["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("\n1000000\n"), "{stdout}");
    assert_eq!(ran["stdout_bytes_left_out"], json!(6_888_896 - 256), "{ran}");
    let ran = talk
        .done("exec", &json!({ "session": session, "shell": "echo begun; sleep 600", "timeout_seconds": 1 }));
    assert_eq!(
        (&ran["exit_code"], &ran["timed_out"], &ran["stdout"]),
        (&json!(null), &json!(true), &json!("begun\n"))
    );
    let ran = talk.done("exec", &json!({ "session": session, "argv": ["no-such-program"] }));
    assert_eq!(ran["exit_code"], 127, "{ran}");
    let ran = talk.done("exec", &json!({ "session": session, "shell": "kill -9 $$" }));
    assert_eq!((&ran["exit_code"], &ran["signal"]), (&json!(137), &json!(9)), "{ran}");
    let long = "x".repeat(1 << 20);
    let ran = talk.done("exec", &json!({ "session": session, "argv": ["wc", "-c"], "stdin": long }));
    assert_eq!(ran["stdout"], "1048576\n");
    assert_eq!(talk.shell(&session, "sleep 600 & echo in the background"), "in the background\n");
}

#[test]
fn cancelled_call_kills_its_command() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    let session = talk.open();
    let arguments = json!({ "session": session, "argv": ["sleep", "600"] });
    let id = talk.begin_asking("tools/call", &json!({ "name": "exec", "arguments": arguments }));
    let mut other = McpConversation::begin(&world, &["--session", &session]);
    let running = |talk: &mut McpConversation| talk.done("sessions", &json!({}))[0]["running"].clone();
    belljar_testkit::wait::until(|| running(&mut other) == 1);
    talk.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    belljar_testkit::wait::until(|| running(&mut other) == 0);
}

#[test]
fn run_uses_its_own_sandbox_and_reports_changes() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/part/file", "before\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source"]);
        let ran = talk.done("run", &json!({ "shell": "echo after > file; pwd", "cwd": "part" }));
        assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("/workspace/part\n")), "{ran}");
        assert_eq!(ran["changes"]["files"], json!([{ "path": "part/file", "change": "modified" }]));
        assert!(ran["changes"]["diff"].as_str().unwrap().contains("-before\n+after\n"), "{ran}");
        assert!(list(world).is_empty());
        assert_eq!(world.read("source/part/file"), "before\n");
    });
}

#[test]
fn only_named_directories_are_copied() {
    let world = World::new(BELLJAR);
    world.write("source/.git/hooks/file", "below\n");
    world.write("source/file", "inside\n");
    world.write("second/file", "second\n");
    world.write("other/file", "outside\n");
    std::os::unix::fs::symlink("../other", world.path().join("source/link")).unwrap();
    let mut talk = McpConversation::begin(&world, &["--workspace", "source", "--workspace", "second"]);
    let [other, second] = ["other", "second"].map(|name| world.path().join(name).display().to_string());
    for directory in
        ["..", "../other", "source/link", "/", "/etc", &other, "source/.git", "source/.git/hooks", "none"]
    {
        for tool in ["open", "run"] {
            let mut arguments = json!({ "directory": directory });
            if tool == "run" {
                arguments["argv"] = json!(["cat", "file"]);
            }
            let (code, message) = talk.refused(tool, &arguments);
            assert!(code == "permission_denied" && message.contains(&second), "{message}");
        }
    }
    for (directory, content) in
        [("source", "inside\n"), ("source/", "inside\n"), ("second", "second\n"), (&second, "second\n")]
    {
        let ran = talk.done("run", &json!({ "argv": ["cat", "file"], "directory": directory }));
        assert_eq!(ran["stdout"], content, "{directory}");
    }
    drop(talk);
    let mut without = McpConversation::begin(&world, &[]);
    let (code, _) = without.refused("open", &json!({ "directory": "source" }));
    assert_eq!(code, "permission_denied");
    assert_eq!(without.done("run", &json!({ "argv": ["ls", "-A"] }))["stdout"], "");
}

#[test]
fn number_of_sandboxes_is_limited_and_closing_one_frees_a_slot() {
    let world = World::new(BELLJAR);
    let mut talk = McpConversation::begin(&world, &[]);
    let sessions: Vec<_> = (0..16).map(|_| talk.open()).collect();
    assert_eq!(talk.refused("open", &json!({})).0, "limit_exceeded");
    assert_eq!(talk.refused("run", &json!({ "argv": ["true"] })).0, "limit_exceeded");
    talk.done("close", &json!({ "session": sessions[3] }));
    assert_eq!(talk.done("run", &json!({ "argv": ["true"] }))["exit_code"], 0);
    // A session that has ended by itself, or by a person, doesn't count either.
    let _ = world.run(&["session", "end", "--discard", &sessions[4]]).succeeded();
    talk.open();
    talk.open();
}

#[test]
fn sessions_of_other_callers_are_inaccessible_unless_named() {
    let world = World::new(BELLJAR);
    let _sessions = crate::session::SessionCleanup(&world);
    world.write("source/file", "theirs\n");
    let id = create(&world, &["--workspace-copy", "source", "--name", "theirs"]);
    let mut talk = McpConversation::begin(&world, &[]);
    for name in [&id, "theirs", &id[..8], "", "*"] {
        for tool in ["exec", "close", "diff", "read"] {
            let mut arguments = json!({ "session": name });
            match tool {
                "exec" => arguments["argv"] = json!(["true"]),
                "read" => arguments["path"] = json!("file"),
                _ => {}
            }
            assert_eq!(talk.refused(tool, &arguments).0, "not_found", "{name} {tool}");
        }
    }
    assert_eq!(talk.done("sessions", &json!({})), json!([]));
    drop(talk);
    let mut talk = McpConversation::begin(&world, &["--session", "theirs"]);
    assert_eq!(talk.shell(&id, "cat file"), "theirs\n");
    assert_eq!(talk.refused("close", &json!({ "session": id })).0, "permission_denied");
    assert_eq!(talk.end(), Some(0));
    assert_eq!(list(&world).len(), 1, "the session that existed before stays");
}

#[test]
fn web_access_is_what_the_server_was_started_with() {
    let (world, server) = (World::new(BELLJAR), crate::egress::HelloServer::start());
    let port = server.address.port();
    world.write("source/file", "");
    let rules = format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]\n");
    world.write("policy.yaml", &rules);
    world.write("source/policy.yaml", &rules);
    let fetch = format!("unset NO_PROXY no_proxy; curl -sSf http://localhost:{port}/");
    let mut sealed = McpConversation::begin(&world, &[]);
    assert_ne!(sealed.done("run", &json!({ "shell": fetch }))["exit_code"], 0);
    assert_eq!(server.asked(), 0);
    let mut talk = McpConversation::begin(&world, &["--egress", "policy.yaml", "--workspace", "source"]);
    let session = talk.done("open", &json!({}));
    assert_eq!(session["reaches_the_web"], true);
    assert_eq!(talk.shell(session["session"].as_str().unwrap(), &fetch), "hello\n");
    assert_eq!(talk.done("run", &json!({ "shell": fetch }))["stdout"], "hello\n");
    assert_eq!(server.asked(), 2);
    // A policy in the workspace could be replaced by an approved change, so the client would control it.
    let ran = world.run(&["mcp", "--egress", "source/policy.yaml", "--workspace", "source"]);
    assert!(ran.code == 125 && ran.stderr.contains("lies in the workspace"), "{ran:?}");
}

#[test]
fn changes_without_namespaces_are_reported_and_discarded_as_usual() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let mut talk = McpConversation::begin(&world, &["--backend", "subprocess", "--workspace", "source"]);
    let ran = talk.done("run", &json!({ "shell": "cat file; echo after > file" }));
    assert_eq!(ran["stdout"], "before\n");
    assert!(ran["changes"].to_string().contains("+after"), "{ran}");
    let session = talk.open();
    assert_eq!(talk.done("read", &json!({ "session": session, "path": "file" }))["content"], "before\n");
    talk.shell(&session, "echo more > file");
    assert!(talk.done("diff", &json!({ "session": session })).to_string().contains("+more"));
    talk.done("discard", &json!({ "session": session }));
    assert!(!talk.done("diff", &json!({ "session": session })).to_string().contains("+more"));
    assert_eq!(world.read("source/file"), "before\n");
}
