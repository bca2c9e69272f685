//! Programs in a sandbox.

use crate::BackendCase;
use crate::house::{BackendFixture, nothing, pipe, program, run, shell, start, wait};
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use belljar_sandbox::backend::{BackendError, TerminalSize};
use belljar_testkit::wait::until;
use std::fs::File;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

pub(crate) const CASES: &[BackendCase] = &[
    ("an_exit_code_a_signal_and_both_streams_come_back", an_exit_code_a_signal_and_both_streams_come_back),
    ("output_is_there_as_it_is_written", output_is_there_as_it_is_written),
    ("input_reaches_the_program_and_its_end_too", input_reaches_the_program_and_its_end_too),
    ("much_goes_through_unchanged", much_goes_through_unchanged),
    ("many_run_at_once", many_run_at_once),
    ("what_is_not_there_is_said_by_name", what_is_not_there_is_said_by_name),
    ("the_environment_is_what_was_given_and_no_more", the_environment_is_what_was_given_and_no_more),
    ("a_terminal_is_one_and_has_the_size_it_is_given", a_terminal_is_one_and_has_the_size_it_is_given),
    (
        "signals_reach_the_group_and_kill_reaches_what_left_it",
        signals_reach_the_group_and_kill_reaches_what_left_it,
    ),
    ("one_that_is_dropped_is_killed", one_that_is_dropped_is_killed),
    ("what_runs_in_the_background_runs_on", what_runs_in_the_background_runs_on),
    ("waiting_ends_at_the_deadline", waiting_ends_at_the_deadline),
];

fn an_exit_code_a_signal_and_both_streams_come_back(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let ran = run(&*sandbox, "echo out; echo err >&2; exit 7");
    assert_eq!(
        (ran.outcome, ran.stdout.as_str(), ran.stderr.as_str()),
        (ProgramOutcome::Exited(7), "out\n", "err\n")
    );
    assert_eq!(run(&*sandbox, "kill -TERM $$").outcome, ProgramOutcome::Signaled(15));
}

fn output_is_there_as_it_is_written(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let (mut output, theirs) = pipe();
    let streams = Stdio::Descriptors([nothing(), theirs, nothing()]);
    let mut execution = sandbox.exec(&shell("echo first; sleep 600"), streams).unwrap();
    let mut line = [0; 6];
    output.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"first\n");
    execution.kill().unwrap();
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Signaled(9));
}

fn input_reaches_the_program_and_its_end_too(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let ((mut output, theirs), (input, ours)) = (pipe(), pipe());
    let streams = Stdio::Descriptors([input.into(), theirs, nothing()]);
    let mut execution = sandbox.exec(&program(&["cat"]), streams).unwrap();
    File::from(ours).write_all(b"through and through").unwrap();
    let mut came = String::new();
    output.read_to_string(&mut came).unwrap();
    assert_eq!((came.as_str(), wait(execution.as_mut())), ("through and through", ProgramOutcome::Exited(0)));
}

fn much_goes_through_unchanged(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let ((mut output, theirs), (input, ours)) = (pipe(), pipe());
    let streams = Stdio::Descriptors([input.into(), theirs, nothing()]);
    let mut execution = sandbox.exec(&program(&["cat"]), streams).unwrap();
    // No two pieces of it are the same.
    let much: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let sent = much.clone();
    let writer = std::thread::spawn(move || File::from(ours).write_all(&sent).unwrap());
    let mut came = Vec::new();
    output.read_to_end(&mut came).unwrap();
    writer.join().unwrap();
    assert!(came == much, "{} of {} bytes", came.len(), much.len());
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Exited(0));
}

fn many_run_at_once(house: &BackendFixture) {
    let sandbox = house.sandbox();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let sandbox = &*sandbox;
            scope.spawn(move || {
                let ran = run(sandbox, &format!("sleep 0.0{number}; echo {number}; exit {number}"));
                assert_eq!(
                    (ran.outcome, ran.stdout),
                    (ProgramOutcome::Exited(number), format!("{number}\n"))
                );
            });
        }
    });
}

fn what_is_not_there_is_said_by_name(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let streams = || Stdio::Descriptors([nothing(), nothing(), nothing()]);
    let error = sandbox.exec(&program(&["no-such-program"]), streams()).unwrap_err();
    let BackendError::NotStarted { program, source } = error else { panic!("{error:?}") };
    assert_eq!((program.as_str(), source), ("no-such-program", rustix::io::Errno::NOENT));
    // The sandbox goes on.
    assert_eq!(run(&*sandbox, "true").outcome, ProgramOutcome::Exited(0));
}

fn the_environment_is_what_was_given_and_no_more(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let ran = run(&*sandbox, "env");
    assert!(ran.stdout.lines().any(|line| line == "GIVEN=a value"), "{}", ran.stdout);
    let host = std::env::vars().find(|(name, _)| name.starts_with("CARGO_")).unwrap();
    assert!(!ran.stdout.contains(&host.0), "{}", ran.stdout);
}

fn a_terminal_is_one_and_has_the_size_it_is_given(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let script = "read go; test -t 0 && test -t 1 && stty size";
    let mut execution = sandbox.exec(&shell(script), Stdio::Terminal).unwrap();
    let mut terminal = File::from(execution.take_terminal().unwrap());
    execution.resize(TerminalSize { rows: 33, columns: 101 }).unwrap();
    terminal.write_all(b"go\n").unwrap();
    let mut came = Vec::new();
    let mut byte = [0];
    // A terminal that no process holds any more ends in an error.
    while terminal.read_exact(&mut byte).is_ok() {
        came.push(byte[0]);
    }
    let came = String::from_utf8(came).unwrap();
    assert!(came.contains("33 101"), "{came:?}");
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Exited(0));
}

fn signals_reach_the_group_and_kill_reaches_what_left_it(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut execution = start(&*sandbox, "trap 'exit 3' TERM; touch ready; while true; do sleep 0.05; done");
    until(|| run(&*sandbox, "test -e ready").outcome == ProgramOutcome::Exited(0));
    execution.signal(15).unwrap();
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Exited(3));
    let mut execution = start(&*sandbox, "setsid sh -c 'touch left; exec sleep 600' & wait");
    until(|| run(&*sandbox, "test -e left").outcome == ProgramOutcome::Exited(0));
    execution.kill().unwrap();
    assert_eq!(wait(execution.as_mut()), ProgramOutcome::Signaled(9));
    until(|| sandbox.stats().unwrap().processes == 0);
}

fn one_that_is_dropped_is_killed(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let execution = start(&*sandbox, "sleep 600");
    until(|| sandbox.stats().unwrap().processes > 0);
    drop(execution);
    until(|| sandbox.stats().unwrap().processes == 0);
}

fn what_runs_in_the_background_runs_on(house: &BackendFixture) {
    let sandbox = house.sandbox();
    assert_eq!(
        run(&*sandbox, "sleep 600 >/dev/null 2>&1 & echo $! > pid").outcome,
        ProgramOutcome::Exited(0)
    );
    let ran = run(&*sandbox, "kill -0 $(cat pid)");
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{}", ran.stderr);
    assert_eq!(run(&*sandbox, "kill $(cat pid)").outcome, ProgramOutcome::Exited(0));
    until(|| sandbox.stats().unwrap().processes == 0);
}

fn waiting_ends_at_the_deadline(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut execution = start(&*sandbox, "sleep 600");
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(execution.wait_until(Some(soon)).unwrap(), None);
    assert!(Instant::now() >= soon);
}
