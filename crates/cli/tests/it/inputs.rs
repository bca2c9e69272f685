//! Files on the command line: a special file that a sandbox puts in their place must not block.

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{ProgramOutput, World};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;
use std::process::Command;

/// Runs a command, and kills it if it blocks.
fn ended(world: &World, arguments: &[&str]) -> ProgramOutput {
    let program = ["60", BELLJAR];
    let ran =
        world.command_of("/usr/bin/timeout".as_ref(), &[&program, arguments].concat()).output().unwrap();
    ProgramOutput::from(ran)
}

#[test]
fn pipe_instead_of_a_file_is_refused_without_waiting() {
    let world = World::new(BELLJAR);
    world.write("w/job.json", job(&json!([shell("true")])).to_string());
    for command in [
        "run w/pipe",
        "validate w/pipe",
        "job submit w/pipe",
        "config check w/pipe",
        "audit verify w/pipe",
        "audit verify --anchor w/pipe",
        "egress test --policy w/job.json w/pipe",
        "job list --node http://127.0.0.1:9 --token-file w/pipe",
        "job list --node http://127.0.0.1:9 --token-file /dev/zero",
        "node --token-file /dev/zero",
    ] {
        let _ = std::fs::remove_file(world.path().join("w/pipe"));
        mkfifoat(CWD, world.path().join("w/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let ran = ended(&world, &command.split(' ').collect::<Vec<_>>());
        assert!(![0, 124, 137].contains(&ran.code), "{command}: {ran:?}");
    }
    // Control: a file, and a pipe that the caller has passed.
    world.run(&["run", "w/job.json"]).succeeded();
    let script = format!("{BELLJAR} run <(cat w/job.json)");
    let mut shell: Command = world.command_of("/bin/bash".as_ref(), &["-c", &script]);
    ProgramOutput::from(shell.output().unwrap()).succeeded();
}
