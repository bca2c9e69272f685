//! Configured limits are enforced, wherever they are set, or no sandbox is made.

use crate::BELLJAR;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::Value;

/// Returns a layer's entry in the isolation report.
fn layer(ran: &ProgramOutput, name: &str) -> Value {
    let isolation: Value = serde_json::from_str(&ran.stderr).unwrap_or_else(|_| panic!("{ran:?}"));
    let layers = isolation["layers"].as_array().unwrap_or_else(|| panic!("{isolation}"));
    layers.iter().find(|layer| layer["name"] == name).cloned().unwrap_or_default()
}

fn detail(ran: &ProgramOutput, name: &str) -> String {
    layer(ran, name)["detail"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn configured_limits_apply_to_commands_and_the_command_line_takes_precedence() {
    let world = World::new(BELLJAR);
    let exec = |options: &[&str]| {
        world.run(&[&["exec", "--isolation"], options, &["--", "true"]].concat()).succeeded()
    };
    let limited = "sandboxing: {native: {memory_limit: 96m, pids_limit: 17}}";
    // Control.
    assert!(detail(&exec(&[]), "memory_limit").starts_with("4 GiB"));
    world.write("limits.yaml", limited);
    let named = exec(&["--config", "limits.yaml"]);
    assert!(detail(&named, "memory_limit").starts_with("96 MiB"), "{named:?}");
    assert!(detail(&named, "process_limit").starts_with("17 processes"), "{named:?}");
    world.write(".config/belljar/config.yaml", limited);
    let usual = exec(&["--pids", "19"]);
    assert!(detail(&usual, "memory_limit").starts_with("96 MiB"), "{usual:?}");
    assert!(detail(&usual, "process_limit").starts_with("19 processes"), "{usual:?}");
    // A layer that the configuration requires is required of commands, too.
    world.write(".config/belljar/config.yaml", "sandboxing: {native: {required: [cpu_limit]}}");
    let refused = world.run(&["exec", "--", "true"]);
    assert!(refused.code == 125 && refused.stderr.contains("cpu_limit"), "{refused:?}");
}

#[test]
fn command_line_limit_is_enforced_or_nothing_runs() {
    World::as_everyone(BELLJAR, |world| {
        let exec = |cpus: &str| world.run(&["exec", "--isolation", "--cpus", cpus, "--", "true"]);
        // Control: no limit is requested.
        exec("none").succeeded();
        let limited = exec("0.5");
        match limited.code {
            0 => assert_eq!(layer(&limited, "cpu_limit")["in_force"], true, "{limited:?}"),
            code => assert!(code == 125 && limited.stderr.contains("cpu_limit"), "{limited:?}"),
        }
    });
}
