//! Jobs that a client watches, reads, and cancels.

use super::{FakeNode, FaultyRelay, ask, command, told};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, command as job_of, new_id, script};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn watcher_gets_each_event_once_despite_broken_connections() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let id = node.submit(script("for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done; exit 4"));
    for event in [1, 2] {
        let relay = FaultyRelay::cutting(node.address(), 3, event);
        let watched = ask(&world, relay.address, &["watch", &id, "--json"]);
        assert_eq!(watched.code, 1, "{}", watched.stderr);
        assert!(watched.stderr.contains("the connection is lost"), "{}", watched.stderr);
        let heard: Vec<Value> =
            watched.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(heard, node.events(&id));
        assert!(heard.len() >= 5, "{heard:?}");
        let seen = relay.seen.lock().unwrap();
        // If the connection broke in its first event, the client had received none yet.
        let last_ids: [u64; 4] = if event == 1 { [0, 0, 0, 0] } else { [0, 1, 2, 3] };
        assert_eq!((seen.cut, seen.last_ids.as_slice()), (3, &last_ids[..]));
    }
    // The control: stable connections produce no message, and an ended job is reported as well.
    let watched = ask(&world, node.address(), &["watch", &id]);
    assert_eq!((watched.code, watched.stderr.as_str()), (1, ""));
    assert!(
        watched.stdout.contains("  stdout | 6\n") && watched.stdout.contains("failed in "),
        "{}",
        watched.stdout
    );
}

#[test]
fn watcher_gets_the_end_of_a_job_after_the_node_was_killed_and_restarted() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let id = node.submit(script("echo begun; sleep 60"));
    let relay = FaultyRelay::cutting(node.address(), 0, 0);
    let mut watching = command(&world, relay.address, &["watch", &id]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut heard = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(heard.any(|line| line.ends_with("stdout | begun")));
    node.killed_and_started();
    *relay.to.lock().unwrap() = node.address();
    let rest: Vec<_> = heard.collect();
    assert_eq!(rest.len(), 3, "{rest:?}");
    assert!(
        rest[0].ends_with("  lost with its node") && rest[1].starts_with("lost with its node in "),
        "{rest:?}"
    );
    let output = watching.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    // Once, for any number of attempts.
    assert_eq!(said.matches("the connection is lost").count(), 1, "{said}");
}

#[test]
fn repeated_event_is_printed_once() {
    let world = World::new(crate::BELLJAR);
    let id = new_id();
    let (job, asked) = (told(&id, &json!([])), AtomicUsize::new(0));
    let event = |id: u64, status: &str| {
        let at = "2026-01-31T12:00:00Z";
        let event = json!({ "id": id, "at": at, "event": "status", "status": status, "attempt": 1 });
        format!("id: {id}\nevent: status\ndata: {event}\n\n")
    };
    let begun = event(1, "accepted") + &event(2, "in_progress");
    let all = begun.clone() + &event(3, "failed");
    // A node that ignores the client's last event id starts from the beginning each time, and disconnects in the middle at
    // first.
    let node = FakeNode::telling(&world, move |target| match target.ends_with("/events") {
        true if asked.fetch_add(1, Ordering::Relaxed) == 0 => (200, begun.clone().into_bytes()),
        true => (200, all.clone().into_bytes()),
        false => (200, job.clone()),
    });
    let watched = ask(&world, node.address, &["watch", &id, "--json"]);
    assert_eq!(watched.code, 1, "{}", watched.stderr);
    let heard: Vec<Value> = watched.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(heard.iter().map(|event| event["id"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn job_output_is_printed_unchanged_and_followed_while_it_runs() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let id = node.submit(script("printf 'one\\033[1m\\n'; echo two >&2; sleep 60"));
    let events = format!("/v1/worker/jobs/{id}/events");
    let mut told = node.begin(&HttpRequest::new("GET", &events));
    wait::until(|| told.line().unwrap().is_some_and(|line| line.contains("two")));
    drop(told);
    // The output up to now.
    let ran = ask(&world, node.address(), &["logs", &id]).succeeded();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("one\u{1b}[1m\n", "two\n"));
    let mut following =
        command(&world, node.address(), &["logs", "--follow", &id]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(following.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "one\u{1b}[1m\n");
    assert!(following.try_wait().unwrap().is_none());
    let ran = ask(&world, node.address(), &["cancel", &id]).succeeded();
    assert!(ran.stdout.contains("is to stop"), "{}", ran.stdout);
    assert!(following.wait().unwrap().success());
    node.wait_for(&id, "canceled");
    // A repeated request changes nothing.
    let ran = ask(&world, node.address(), &["cancel", &id]).succeeded();
    assert_eq!(ran.stdout, format!("{id} is over: canceled\n"));
    // After the end the output is complete.
    let ran = ask(&world, node.address(), &["logs", &id]).succeeded();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("one\u{1b}[1m\n", "two\n"));
    assert_eq!(ask(&world, node.address(), &["watch", &id]).code, 1);
}

#[test]
fn job_output_on_a_terminal_has_no_active_escape_sequences() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = job_of(&["printf", "a\\tb\\033[2Jc\\n"]);
    node.run(&job);
    let id = job["job_id"].as_str().unwrap();
    let line = format!(
        "{} job --node http://{} --token-file token logs {id}",
        world.program().display(),
        node.address()
    );
    // `script` provides a terminal.
    let mut scripted: Command = world.command_of("script".as_ref(), &["-qec", &line, "/dev/null"]);
    let output = scripted.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\tb\\u{1b}[2Jc\r\n");
}
