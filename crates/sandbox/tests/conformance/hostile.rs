//! Programs that know how they are looked after, and make that hard.

use crate::BackendCase;
use crate::house::{BackendFixture, nothing, pipe, shell, start, wait};
use crate::limits::has;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use belljar_sandbox::backend::Sandbox;
use belljar_sandbox::limits::{Limit, Limits};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_testkit::machine_code::{fork_bomb, forking_away, without_its_first_thread};
use belljar_testkit::wait::until;
use std::time::{Duration, Instant};
use tar::{Builder, Header};

pub(crate) const CASES: &[BackendCase] = &[
    (
        "a_program_whose_first_thread_has_ended_is_counted_and_killed",
        a_program_whose_first_thread_has_ended_is_counted_and_killed,
    ),
    ("who_forks_away_ends_with_its_sandbox", who_forks_away_ends_with_its_sandbox),
    ("program_that_forks_without_end_is_killed", program_that_forks_without_end_is_killed),
    (
        "orphans_that_end_without_pause_hold_up_neither_answers_nor_the_memory_limit",
        orphans_that_end_without_pause_hold_up_neither_answers_nor_the_memory_limit,
    ),
];

pub(crate) fn put_program(sandbox: &dyn Sandbox, name: &str, program: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(program.len() as u64);
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut header, name, program).unwrap();
    sandbox.copy_in("/workspace", &mut builder.into_inner().unwrap().as_slice()).unwrap();
}

fn a_program_whose_first_thread_has_ended_is_counted_and_killed(house: &BackendFixture) {
    let sandbox = house.sandbox();
    put_program(&*sandbox, "program", &without_its_first_thread());
    let mut running = start(&*sandbox, "exec ./program");
    until(|| sandbox.stats().unwrap().memory_bytes > 15 << 20);
    // By then it has no first thread any more.
    let soon = Instant::now() + Duration::from_millis(300);
    assert_eq!(running.wait_until(Some(soon)).unwrap(), None);
    let stats = sandbox.stats().unwrap();
    assert!(stats.processes == 1 && stats.memory_bytes > 15 << 20, "{stats:?}");
    running.kill().unwrap();
    assert_eq!(wait(running.as_mut()), ProgramOutcome::Signaled(9));
    assert_eq!(sandbox.stats().unwrap().processes, 0);
}

/// A sandbox of few processes: on an emulated machine PID 1 takes milliseconds to look at each, also of those that have ended.
fn of_few(house: &BackendFixture, processes: u64) -> Box<dyn Sandbox> {
    let limits = Limits { memory_bytes: Some(96 << 20), processes, ..Limits::default() };
    house
        .backend
        .create(BackendFixture::wanted_with(
            WorkspaceChoice::Empty,
            Provision { limits, ..Provision::default() },
        ))
        .unwrap()
}

fn who_forks_away_ends_with_its_sandbox(house: &BackendFixture) {
    let sandbox = of_few(house, 40);
    // Without one there is nothing that keeps them together (SECURITY.md).
    if !has(&*sandbox, "pid_namespace") {
        return house.skip("pid_namespace");
    }
    put_program(&*sandbox, "program", &forking_away(8));
    let mut running = start(&*sandbox, "exec ./program");
    // On an emulated machine that takes all of its time: an answer may come too late, and is requested again.
    until(|| sandbox.stats().is_ok_and(|stats| stats.cpu > Duration::from_millis(200)));
    let begun = Instant::now();
    sandbox.destroy().unwrap();
    // By themselves they would end much later.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(wait(running.as_mut()), ProgramOutcome::Killed);
}

fn program_that_forks_without_end_is_killed(house: &BackendFixture) {
    let sandbox = of_few(house, 200);
    // Without one, those that have left its session live until the sandbox ends (SECURITY.md).
    if !has(&*sandbox, "pid_namespace") {
        return house.skip("pid_namespace");
    }
    put_program(&*sandbox, "program", &fork_bomb());
    let mut running = start(&*sandbox, "exec ./program");
    // On an emulated machine PID 1 gets too little of the processor to answer: then it is under way, too.
    until(|| sandbox.has_ended() || sandbox.stats().map_or(true, |stats| stats.processes > 30));
    running.kill().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    assert!(running.wait_until(Some(limit)).unwrap().is_some(), "it is not killed in a minute");
}

/// However many end, there is always another one to be reaped.
fn orphans_that_end_without_pause_hold_up_neither_answers_nor_the_memory_limit(house: &BackendFixture) {
    let sandbox = of_few(house, 40);
    for layer in ["pid_namespace", "memory_limit"] {
        if !has(&*sandbox, layer) {
            return house.skip(layer);
        }
    }
    put_program(&*sandbox, "program", &forking_away(12));
    // Started before: once the others are at it, no process is left for one more.
    let (waiting, let_go) = pipe();
    let streams = Stdio::Descriptors([waiting.into(), nothing(), nothing()]);
    let greedy = sandbox.exec(&shell("read line; exec tail /dev/zero"), streams).unwrap();
    let mut running = start(&*sandbox, "exec ./program");
    until(|| sandbox.stats().is_ok_and(|stats| stats.cpu > Duration::from_millis(300)));
    // On an emulated machine PID 1 gets too little of the processor for each answer to be in time. Held up, it gives none.
    for _ in 0..5 {
        until(|| sandbox.stats().is_ok());
    }
    drop(let_go);
    until(|| sandbox.ended_by() == Some(Limit::Memory));
    assert_eq!(wait(running.as_mut()), ProgramOutcome::Killed);
    drop(greedy);
}
