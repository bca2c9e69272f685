//! Members of `sandboxing` with a single valid value: the check and the commands refuse any other.

use crate::BELLJAR;
use belljar_testkit::world::World;
use std::fmt::Write;

const SPECIFIED: &str = include_str!("../../../../sandbox/tests/config/layered.yaml");

/// The members, each with a value that can't be enforced.
const CASES: &[(&str, &str)] = &[
    ("default_backend", "k8s"),
    ("overrides.web", "k8s"),
    ("docker.allowed_hosts", "['db.example:5432']"),
    ("docker.dns_allowed", "false"),
    ("docker.loopback_allowed", "false"),
    ("docker.sidecar_pids_limit", "16"),
    ("docker.sidecar_tmpfs_size", "16m"),
    ("docker.auto_remove", "false"),
    ("docker.lifecycle.strategy", "per-task"),
    ("docker.lifecycle.grace_period_seconds", "0"),
    ("docker.lifecycle.health_check_interval_seconds", "60"),
    ("native.lifecycle.strategy", "per-task"),
    ("native.lifecycle.grace_period_seconds", "0"),
    ("native.lifecycle.health_check_interval_seconds", "60"),
    ("k8s.namespace", "others"),
    ("k8s.resource_requests.cpu", "2"),
    ("k8s.resource_requests.memory", "2Gi"),
    ("k8s.resource_limits.cpu", "3"),
    ("k8s.resource_limits.memory", "3Gi"),
    ("k8s.network_policy", "allow-all"),
];

/// Returns a file with that member alone.
fn with(member: &str, value: &str) -> String {
    let mut text = "sandboxing:".to_owned();
    for (depth, name) in (1..).zip(member.split('.')) {
        // Writing to a String can't fail.
        let _ = write!(text, "\n{:1$}{name}:", "", depth * 2);
    }
    format!("{text} {value}\n")
}

#[test]
fn value_that_cannot_be_enforced_is_refused_by_config_check_and_commands() {
    let world = World::new(BELLJAR);
    for (member, value) in CASES {
        world.write("belljar.yaml", with(member, value));
        let checked = world.run(&["config", "check", "belljar.yaml"]);
        let place = format!("sandboxing.{member}\n");
        assert!(checked.code == 2 && checked.stdout.contains(&place), "{member}: {checked:?}");
        assert_eq!(checked.stdout.matches("expected").count(), 1, "{member}: {checked:?}");
        let ran = world.run(&["exec", "--config", "belljar.yaml", "--", "true"]);
        assert!(ran.code == 2 && ran.stderr.contains(member), "{member}: {ran:?}");
    }
    // The control: the values of the specification, which has each of these members.
    world.write("belljar.yaml", SPECIFIED);
    world.run(&["config", "check", "belljar.yaml"]).succeeded();
}
