//! Output that can't be written: the exit code and standard error report it.

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::fs::File;
use std::process::Stdio;

/// Returns a device to which no byte can be written.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn to_a_full_disk(world: &World, arguments: &[&str]) -> ProgramOutput {
    let child = world.command(arguments).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    ProgramOutput::from(child.wait_with_output().unwrap())
}

#[test]
fn failed_write_of_program_output_is_an_error_with_its_reason() {
    let world = World::new(BELLJAR);
    for command in [&["echo", "ok"][..], &["seq", "1", "100000"]] {
        let exec = [&["exec", "--"], command].concat();
        let ran = to_a_full_disk(&world, &exec);
        assert!(ran.stderr.contains("can't write to standard output: No space left"), "{command:?}: {ran:?}");
        assert_ne!(ran.code, 0, "{command:?}");
        // Control.
        world.run(&exec).succeeded();
    }
    let id = world.run(&["session", "create"]).succeeded().stdout.trim().to_owned();
    let ran = to_a_full_disk(&world, &["session", "exec", &id, "--", "echo", "ok"]);
    assert!(ran.code == 125 && ran.stderr.contains("No space left"), "{ran:?}");
    world.run(&["session", "end", &id]).succeeded();
}

#[test]
fn changes_of_a_run_whose_output_is_lost_are_not_applied() {
    let world = World::new(BELLJAR);
    world.write("w/file", "before");
    let change = ["exec", "--workspace-copy", "w", "--apply", "--", "sh", "-c", "echo after > file; echo ok"];
    assert_eq!(to_a_full_disk(&world, &change).code, 125);
    assert_eq!(world.read("w/file"), "before");
    // Control.
    world.run(&change).succeeded();
    assert_eq!(world.read("w/file"), "after\n");
}

#[test]
fn reader_that_closes_the_pipe_early_is_no_failure() {
    let world = World::new(BELLJAR);
    for command in ["completions bash", "man", "doctor --json", "exec -- echo ok"] {
        let script = format!("{BELLJAR} {command} | true; exit ${{PIPESTATUS[0]}}");
        let ran =
            ProgramOutput::from(world.command_of("/bin/bash".as_ref(), &["-c", &script]).output().unwrap());
        assert!(
            !ran.stderr.contains("panicked") && !ran.stderr.contains("Broken pipe"),
            "{command}: {ran:?}"
        );
    }
}

#[test]
fn no_command_panics_or_succeeds_with_full_standard_output() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("true")])).to_string());
    world.write("sound.yaml", "sandboxing: {default_backend: native}");
    for command in [
        "doctor",
        "session list",
        "session list --json",
        "agents",
        "config check sound.yaml",
        "completions bash",
        "man",
        "validate job.json",
        "run job.json",
        "run --json job.json",
        "audit show",
        "--help",
        "--version",
        "exec --help",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let ran = to_a_full_disk(&world, &arguments);
        assert!(ran.stderr.contains("can't write to standard output: No space left"), "{command}: {ran:?}");
        assert_eq!(ran.code, 125, "{command}: {ran:?}");
        // Control.
        let code = world.run(&arguments).code;
        assert!([0, 1].contains(&code), "{command}: {code}");
    }
}

#[test]
fn full_standard_error_changes_nothing() {
    let world = World::new(BELLJAR);
    for (arguments, code) in
        [(&["exec", "--", "/nonexistent"][..], 127), (&["exec", "--timings", "--", "true"], 0)]
    {
        let status = world.command(arguments).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}
