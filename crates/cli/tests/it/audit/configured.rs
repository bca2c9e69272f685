//! The configuration that names the audit log's anchors, and commands that can't determine it.

use crate::BELLJAR;
use crate::egress::HelloServer;
use belljar_testkit::node::{Node, command};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const USUAL: &str = ".config/belljar/config.yaml";

/// A configuration whose required anchor fails: an action that must be recorded is refused.
const FAILING: &str = "audit: {anchors: [{to: 'file:/proc/nonexistent/anchor', required: true}]}\n";

fn world(server: &HelloServer) -> World {
    let world = World::new(BELLJAR);
    let port = server.address.port();
    world.write(
        "policy.yaml",
        format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]"),
    );
    world
}

fn ask(server: &HelloServer) -> String {
    format!("curl -sS --noproxy '' http://localhost:{}/", server.address.port())
}

fn exec(world: &World, server: &HelloServer, options: &[&str]) -> ProgramOutput {
    let script = ask(server);
    world.run(&[&["exec"], options, &["--egress", "policy.yaml", "--", "sh", "-c", &script]].concat())
}

#[test]
fn no_request_is_sent_while_a_required_anchor_fails_however_configured() {
    let server = HelloServer::start();
    let world = world(&server);
    // Control: without a configuration, and with one whose anchor works.
    assert_eq!(exec(&world, &server, &[]).succeeded().stdout, "hello\n");
    let notes = world.path().join("notes");
    let working = format!("audit: {{anchors: [{{to: 'file:{}', required: true}}]}}", notes.display());
    world.write("working.yaml", working);
    assert_eq!(exec(&world, &server, &["--config", "working.yaml"]).succeeded().stdout, "hello\n");
    assert!(notes.metadata().unwrap().len() > 0);
    let asked = server.asked();
    world.write("failing.yaml", FAILING);
    assert_eq!(exec(&world, &server, &["--config", "failing.yaml"]).code, 125);
    let script = ask(&server);
    let mut by_variable = world.command(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &script]);
    by_variable.env("BELLJAR_CONFIG", world.path().join("failing.yaml"));
    assert_eq!(ProgramOutput::from(by_variable.output().unwrap()).code, 125);
    world.write(USUAL, FAILING);
    assert_eq!(exec(&world, &server, &[]).code, 125);
    assert_eq!(server.asked(), asked, "a request was sent");
}

#[test]
fn unreadable_configuration_is_an_error_and_not_treated_as_without_anchors() {
    let server = HelloServer::start();
    let world = world(&server);
    // An unrelated mistake beside the anchor.
    let path = world.write(USUAL, format!("{FAILING}node: 5\n"));
    let ran = exec(&world, &server, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("config.yaml") && ran.stderr.contains("node"), "{ran:?}");
    // Other users can write the file.
    world.write(USUAL, "audit: {anchors: []}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let ran = exec(&world, &server, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
    // A dangling link is an unreadable file, too.
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert_eq!(exec(&world, &server, &[]).code, 125);
    assert_eq!(server.asked(), 0);
    // Control.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(exec(&world, &server, &[]).succeeded().stdout, "hello\n");
}

#[test]
fn named_configuration_is_checked_by_every_command_that_accepts_one() {
    let world = World::new(BELLJAR);
    world.write("broken.yaml", "node: 5");
    world.write("sound.yaml", "audit: {anchors: []}");
    for (named, code) in [("missing.yaml", 125), ("broken.yaml", 2), ("sound.yaml", 0)] {
        assert_eq!(world.run(&["exec", "--config", named, "--", "true"]).code, code, "{named}");
        assert_eq!(world.run(&["agents", "--config", named]).code, code, "{named}");
    }
    // A pipe can be read only once.
    let script = format!("{BELLJAR} exec --config <(echo 'node: 5') -- true");
    let ran = ProgramOutput::from(world.command_of("/bin/bash".as_ref(), &["-c", &script]).output().unwrap());
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn session_delivers_to_the_anchors_of_the_command_that_made_it() {
    let server = HelloServer::start();
    let world = world(&server);
    let script = ask(&server);
    let session = |options: &[(&str, &str)]| {
        let mut create = world.command(&["session", "create", "--egress", "policy.yaml"]);
        create.envs(options.iter().copied());
        let created = ProgramOutput::from(create.output().unwrap());
        if created.code != 0 {
            return created;
        }
        let id = created.stdout.trim().to_owned();
        let asked = world.run(&["session", "exec", &id, "--", "sh", "-c", &script]);
        // The keeper delivers the rest when it stops.
        let _ = world.run(&["session", "end", &id, "--discard"]);
        asked
    };
    let notes = world.path().join("notes");
    let working = format!("audit: {{anchors: [{{to: 'file:{}', required: true}}]}}", notes.display());
    let working = world.write("working.yaml", working).display().to_string();
    // Control.
    assert_eq!(session(&[("BELLJAR_CONFIG", &working)]).stdout, "hello\n");
    assert!(notes.metadata().unwrap().len() > 0, "the session keeper delivered records");
    let asked = server.asked();
    let failing = world.write("failing.yaml", FAILING).display().to_string();
    assert_ne!(session(&[("BELLJAR_CONFIG", &failing)]).stdout, "hello\n");
    world.write(USUAL, FAILING);
    assert_ne!(session(&[]).stdout, "hello\n");
    assert_eq!(server.asked(), asked, "a request was sent");
}

#[test]
fn node_delivers_checkpoints_after_the_records_or_seconds_of_their_anchor() {
    let world = World::new(BELLJAR);
    let anchors = [("number", 3, 86_400), ("time", 1_000_000, 1), ("neither", 1_000_000, 86_400)];
    let rows = anchors.map(|(name, records, seconds)| {
        let place = world.path().join(format!("{name}.notes")).display().to_string();
        format!("{{to: 'file:{place}', every_records: {records}, every_seconds: {seconds}}}")
    });
    let config = format!("audit: {{anchors: [{}]}}\negress: {{rules: []}}\n", rows.join(", "));
    let config = world.write("node.yaml", config).display().to_string();
    let mut node = Node::start(&world, &["--config", &config]);
    let mut asking =
        command(&["sh", "-c", "for n in 1 2 3 4; do curl -s http://a.example/$n >/dev/null; done"]);
    asking["sandbox"]["network_policy"] = json!("restricted");
    node.run(&asking);
    let has_some = |name: &str| {
        world.path().join(format!("{name}.notes")).metadata().is_ok_and(|metadata| metadata.len() > 0)
    };
    wait::until(|| has_some("number") && has_some("time"));
    assert!(!has_some("neither"));
    // The control: a node delivers to all of them when it stops.
    assert_eq!(node.stop(), Some(0));
    assert!(has_some("neither"));
}

#[test]
fn anchor_in_a_sandbox_writable_directory_is_refused_and_not_mounted() {
    let world = World::new(BELLJAR);
    world.write("w/file", "");
    let inside = world.path().join("w");
    for (name, to) in [("file", "file:"), ("syslog", "syslog:")] {
        let anchored = format!("audit: {{anchors: [{{to: '{to}{}/anchor'}}]}}", inside.display());
        let config = world.write(&format!("{name}.yaml"), anchored).display().to_string();
        let lend = ["exec", "--config", &config, "--workspace", "w", "--", "true"];
        let ran = world.run(&lend);
        assert_eq!(ran.code, 125, "{name}: {ran:?}");
        // Control: the same directory, with an anchor elsewhere.
        let elsewhere = format!("audit: {{anchors: [{{to: '{to}{}/elsewhere'}}]}}", world.path().display());
        world.write(&format!("{name}.yaml"), elsewhere);
        world.run(&lend).succeeded();
    }
    // While a sandbox can write there, a configuration with an anchor in that directory is refused.
    let id = world.run(&["session", "create", "--workspace", "w"]).succeeded().stdout.trim().to_owned();
    let anchored = format!("audit: {{anchors: [{{to: 'file:{}/anchor'}}]}}", inside.display());
    world.write("inside.yaml", anchored);
    let ran = world.run(&["audit", "anchor", "--config", "inside.yaml"]);
    assert!(ran.code == 125 && ran.stderr.contains("workspace"), "{ran:?}");
    world.run(&["session", "end", &id]).succeeded();
    // Control: once the keeper is gone.
    wait::until(|| world.run(&["audit", "anchor", "--config", "inside.yaml"]).code == 0);
}
