//! Readiness of a node: it is ready if it can make the sandboxes of jobs.

use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, script};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

fn readiness(node: &Node<'_>) -> HttpResponse {
    HttpRequest::new("GET", "/readyz").send(node.address()).unwrap()
}

#[test]
fn node_whose_state_is_unreachable_for_sandboxes_is_not_ready_and_logs_why() {
    let world = World::new(crate::BELLJAR);
    let closed = world.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let mode = |mode| std::fs::set_permissions(&closed, Permissions::from_mode(mode)).unwrap();
    mode(0o700);
    let node = Node::start(&world, &["--state-dir", "closed/node"]);
    let told = readiness(&node);
    assert_eq!(
        (told.status, told.body.as_slice()),
        (503, &b"the node can't make sandboxes; its log says why"[..])
    );
    assert_eq!(HttpRequest::new("GET", "/healthz").send(node.address()).unwrap().status, 200);
    // A job fails with that reason, too.
    assert_eq!(node.run(&script("true")).json()["status"], "node_failure");
    let log = node.log();
    assert!(log.contains("Permission denied") && log.contains("closed"), "{log}");
    // The control: the node is ready once its sandboxes can access the directory.
    mode(0o711);
    wait::until(|| readiness(&node).status == 200);
    assert_eq!(node.run(&script("true")).json()["status"], "completed");
    assert_eq!(std::fs::read_dir(closed.join("node/runs")).map_or(0, Iterator::count), 0);
}

#[test]
fn node_with_a_stopped_launcher_is_not_ready_until_it_continues() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    assert_eq!(readiness(&node).status, 200);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", node.pid())).unwrap();
    let launcher = Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap();
    kill_process(launcher, Signal::STOP).unwrap();
    wait::until(|| readiness(&node).status == 503);
    kill_process(launcher, Signal::CONT).unwrap();
    wait::until(|| readiness(&node).status == 200);
    assert_eq!(node.run(&script("echo on")).json()["stdout"], "on\n");
}
