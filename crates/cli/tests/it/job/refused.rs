//! Refusals by the client and by the node, and their messages.

use super::{FakeNode, ask, ask_as_on_a_terminal, command};
use belljar_testkit::node::{Node, TOKEN, new_id, steps};
use belljar_testkit::other_user;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;

#[test]
fn token_is_not_sent_to_another_user_who_listens_on_a_former_node_address() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip(
            "token_is_not_sent_to_another_user_who_listens_on_a_former_node_address",
            "root alone can act as another user",
        );
    }
    let world = World::new(crate::BELLJAR);
    world.write("token", TOKEN);
    for at in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let Some((address, heard)) = other_user::listen(at) else { continue };
        let node = match address.is_ipv6() {
            true => format!("http://[::1]:{}", address.port()),
            false => format!("http://localhost:{}", address.port()),
        };
        let ask = |command: &[&str], more: &[&str]| {
            world.run(&[command, &["--node", &node, "--token-file", "token"], more].concat())
        };
        for command in [["job", "list"], ["approval", "list"]] {
            let ran = ask(&command, &[]);
            let why = "its server runs as user 54321";
            assert!(ran.code == 125 && ran.stderr.contains(why), "{at}: {}", ran.stderr);
            assert!(ran.stderr.contains("--node-user USER"), "{at}: {}", ran.stderr);
            assert_eq!(heard.recv().unwrap(), "", "{at}");
        }
        // Control: a node whose user is named gets the request and the token.
        for user in ["54321", "any"] {
            ask(&["job", "list"], &["--node-user", user]);
            assert!(heard.recv().unwrap().contains(TOKEN), "{at}: {user}");
        }
    }
}

#[test]
fn every_mistake_in_a_submission_is_reported_with_its_path_and_nothing_is_submitted() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let submit = |content: &str| {
        world.write("job.json", content);
        ask(&world, node.address(), &["submit", "job.json"])
    };
    let mut request = belljar_testkit::node::command(&["true"]);
    request["more"] = json!(1);
    request["sandbox"]["image"] = json!("");
    let ran = submit(&request.to_string());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    for text in ["job.json is no job", "$.more", "$.sandbox.image", "an unknown member"] {
        assert!(ran.stderr.contains(text), "{text} is not in {}", ran.stderr);
    }
    let mut job =
        steps(&json!([{ "type": "run_command", "args": { "argv": [] } }]))["sandbox"]["job_spec"].clone();
    job["more"] = json!(1);
    let ran = submit(&job.to_string());
    assert!(
        ran.code == 2 && ran.stderr.contains("$.steps[0]") && ran.stderr.contains("$.more"),
        "{}",
        ran.stderr
    );
    for broken in ["", "nothing", "[]", "{\"version\":1,\"version\":1}"] {
        let ran = submit(broken);
        assert_eq!(ran.code, 2, "{broken}: {}", ran.stderr);
    }
    let ran = ask(
        &world,
        node.address(),
        &["submit", "--max-attempts", "11", "--env", "CYNODE_JOB_ID=x", "--", "true"],
    );
    assert!(ran.code == 2 && ran.stderr.contains("$.max_attempts"), "{}", ran.stderr);
    assert_eq!(node.get("/v1/worker/jobs").json()["jobs"], json!([]));
    // The control.
    assert_eq!(submit(&belljar_testkit::node::command(&["true"]).to_string()).code, 0);
}

#[test]
fn errors_that_only_the_node_can_detect_are_reported_by_it() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for (option, place) in
        [("--image=alpine", "$.sandbox.image"), ("--use-inference", "$.sandbox.use_inference")]
    {
        let ran = ask(&world, node.address(), &["submit", option, "--", "true"]);
        assert!(ran.code == 2 && ran.stderr.contains(place), "{}", ran.stderr);
    }
    let unknown_id = new_id();
    for verb in ["show", "watch", "cancel", "logs", "artifacts"] {
        let ran = ask(&world, node.address(), &[verb, &unknown_id]);
        assert!(ran.code == 2 && ran.stderr.contains(&unknown_id), "{verb}: {}", ran.stderr);
    }
}

#[test]
fn unreachable_node_or_bad_token_is_reported_with_a_hint() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let ran = ask(&world, "127.0.0.1:1".parse().unwrap(), &["list"]);
    assert!(
        ran.code == 125 && ran.stderr.contains("can't reach a node at http://127.0.0.1:1"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("Hint: is it running?"), "{}", ran.stderr);
    world.write("other", "another-token-0123456789");
    let with_token = |file: &str| {
        let mut asked = command(&world, node.address(), &["list", "--token-file", file]);
        asked.env("BELLJAR_NODE_TOKEN_FILE", "token");
        ProgramOutput::from(asked.output().unwrap())
    };
    let ran = with_token("other");
    assert!(ran.code == 125 && ran.stderr.contains("Hint: the node refused the token"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("another-token"), "{}", ran.stderr);
    world.write("empty", "");
    assert!(with_token("empty").stderr.contains("empty holds no token"));
    world.write("lines", "one-token-01234567\nx: y");
    assert!(with_token("lines").stderr.contains("lines holds no token"));
    let other = FakeNode::telling(&world, |_| (404, b"<html>nothing here</html>".to_vec()));
    let ran = ask(&world, other.address, &["list"]);
    assert!(ran.code == 125 && ran.stderr.contains("with status 404 is no node"), "{}", ran.stderr);
    let other = FakeNode::telling(&world, |_| (200, b"[]".to_vec()));
    let ran = ask(&world, other.address, &["list"]);
    assert!(ran.code == 125 && ran.stderr.contains("is not the expected document"), "{}", ran.stderr);
    for url in ["https://127.0.0.1:1", "http://node.example", "127.0.0.1:12090"] {
        let ran = world.run(&["job", "list", "--node", url, "--token-file", "token"]);
        assert!(ran.code == 125 && ran.stderr.contains("invalid value"), "{url}: {}", ran.stderr);
    }
    let ran = world.run(&["job", "list", "--node", "http://127.0.0.1:1"]);
    assert!(ran.code == 125 && ran.stderr.contains("--token-file"), "{}", ran.stderr);
    // The control: the same settings by environment variables.
    let mut asked = world.command(&["job", "list"]);
    asked.env("BELLJAR_NODE", format!("http://{}", node.address())).env("BELLJAR_NODE_TOKEN_FILE", "token");
    assert_eq!(ProgramOutput::from(asked.output().unwrap()).succeeded().stdout, "No jobs.\n");
}

#[test]
fn problem_text_with_terminal_escapes_is_printed_escaped() {
    let world = World::new(crate::BELLJAR);
    let problem = json!({
        "type": "urn:cynodeai:error:validation", "title": "\u{1b}[2Jtitle", "status": 400, "detail": "\u{1b}]0;x\u{7}detail",
        "instance": "/", "problems": [{ "path": "\u{1b}[1m$", "found": "\u{9b}1m\u{202e}", "expected": "\u{1b}c" }],
    });
    let mut bare = problem.clone();
    bare.as_object_mut().unwrap().remove("problems");
    for (problem, word) in [(problem, "title"), (bare, "detail")] {
        let node = FakeNode::telling(&world, move |_| (400, problem.to_string().into_bytes()));
        let ran = ask_as_on_a_terminal(&world, node.address, &["list"]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
        assert!(
            !ran.stderr.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{:?}",
            ran.stderr
        );
    }
}
