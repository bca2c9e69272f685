//! Tests of the start, pause and end of sandboxes.

use crate::BackendCase;
use crate::house::{BackendFixture, run, start, wait};
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::isolation::LAYERS;
use belljar_sandbox::backend::Sandbox;
use belljar_testkit::wait::until;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[BackendCase] = &[
    ("a_healthy_backend_says_so", a_healthy_backend_says_so),
    ("paused_nothing_goes_on_and_resumed_it_does", paused_nothing_goes_on_and_resumed_it_does),
    ("who_wakes_the_others_up_is_paused_all_the_same", who_wakes_the_others_up_is_paused_all_the_same),
    ("stats_count_what_runs", stats_count_what_runs),
    ("destroyed_nothing_is_left", destroyed_nothing_is_left),
    ("dropped_nothing_is_left", dropped_nothing_is_left),
    ("what_lives_is_no_leftover", what_lives_is_no_leftover),
];

/// Further requirements on a backend that reports any layer as in force.
pub(crate) const SEALED: &[BackendCase] = &[
    ("two_sandboxes_know_nothing_of_each_other", two_sandboxes_know_nothing_of_each_other),
    ("its_first_process_can_not_be_ended_from_inside", its_first_process_can_not_be_ended_from_inside),
];

/// Requirements on a backend that reports no layer as in force.
pub(crate) const UNSEALED: &[BackendCase] =
    &[("what_seals_nothing_says_so_of_every_layer", what_seals_nothing_says_so_of_every_layer)];

fn a_healthy_backend_says_so(house: &BackendFixture) {
    house.backend.health().unwrap();
    let sandbox = house.sandbox();
    assert_eq!(sandbox.isolation().backend, house.backend.name());
}

fn two_sandboxes_know_nothing_of_each_other(house: &BackendFixture) {
    let (one, other) = (house.sandbox(), house.sandbox());
    assert_ne!(one.id(), other.id());
    let _sleeping = start(&*one, "exec sleep 4321");
    until(|| one.stats().unwrap().processes == 1);
    let ran = run(&*other, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert!(!ran.stdout.contains("4321"), "{}", ran.stdout);
}

/// Returns how often something was written to `count`.
fn counted(sandbox: &dyn Sandbox) -> usize {
    let mut out = Vec::new();
    let copied = sandbox.copy_out("/workspace/count", &mut out);
    copied.map_or(0, |()| out.iter().filter(|byte| **byte == b'x').count())
}

fn paused_nothing_goes_on_and_resumed_it_does(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut counting = start(&*sandbox, "while true; do echo x >> count; sleep 0.01; done");
    let count = || counted(&*sandbox);
    until(|| count() > 2);
    sandbox.pause().unwrap();
    // A write in progress at the pause may still have completed.
    std::thread::sleep(Duration::from_millis(50));
    let stopped_at = count();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(count(), stopped_at);
    sandbox.resume().unwrap();
    until(|| count() > stopped_at + 2);
    counting.kill().unwrap();
    assert_eq!(wait(counting.as_mut()), ProgramOutcome::Signaled(9));
}

fn who_wakes_the_others_up_is_paused_all_the_same(house: &BackendFixture) {
    let sandbox = house.sandbox();
    // A backend that seals nothing stops all processes once, and continues them.
    if sandbox.isolation().layers.iter().all(|layer| layer.name != "landlock" || !layer.in_force) {
        return house.skip("landlock");
    }
    let wakes = "while true; do kill -CONT 0; echo x >> count; done";
    let mut waking = start(&*sandbox, &format!("({wakes}) & ({wakes}) & {wakes}"));
    let count = || counted(&*sandbox);
    until(|| count() > 50);
    // They may be lucky once. The control: they go on in between.
    let is_paused = |_| {
        sandbox.pause().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let stopped_at = count();
        std::thread::sleep(Duration::from_millis(50));
        let is_still = count() == stopped_at;
        sandbox.resume().unwrap();
        until(|| count() > stopped_at);
        is_still
    };
    assert!((0..4).filter(|attempt| is_paused(*attempt)).count() >= 2);
    waking.kill().unwrap();
    wait(waking.as_mut());
}

fn stats_count_what_runs(house: &BackendFixture) {
    let sandbox = house.sandbox();
    assert_eq!(sandbox.stats().unwrap().processes, 0);
    // Older kernels count the memory of a process roughly, so it has to be more than a little.
    let script =
        "x=$(head -c 4000000 /dev/zero | tr '\\0' x); sleep 600 & sleep 600 & while true; do :; done";
    let mut spinning = start(&*sandbox, script);
    until(|| sandbox.stats().unwrap().processes == 3);
    until(|| sandbox.stats().unwrap().cpu > Duration::from_millis(50));
    until(|| sandbox.stats().unwrap().memory_bytes > 3_000_000);
    spinning.kill().unwrap();
    wait(spinning.as_mut());
    // The CPU time of ended processes still counts.
    until(|| sandbox.stats().unwrap().processes == 0);
    assert!(sandbox.stats().unwrap().cpu > Duration::from_millis(50));
}

fn destroyed_nothing_is_left(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut running = start(&*sandbox, "trap '' TERM HUP; setsid sleep 600 & sleep 600");
    until(|| sandbox.stats().unwrap().processes >= 2);
    let begun = Instant::now();
    sandbox.destroy().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(wait(running.as_mut()), ProgramOutcome::Killed);
    nothing_is_left(house);
}

fn dropped_nothing_is_left(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut running = start(&*sandbox, "sleep 600");
    drop(sandbox);
    assert_eq!(wait(running.as_mut()), ProgramOutcome::Killed);
    nothing_is_left(house);
}

fn nothing_is_left(house: &BackendFixture) {
    let runs = house.state.path().join("runs");
    assert_eq!(std::fs::read_dir(runs).map_or(0, Iterator::count), 0);
    assert!(house.backend.reconcile().unwrap().is_empty());
}

fn its_first_process_can_not_be_ended_from_inside(house: &BackendFixture) {
    let sandbox = house.sandbox();
    // The parent of every program is PID 1 or the supervisor, whatever its process id.
    run(&*sandbox, "for signal in KILL STOP TERM; do kill -$signal $PPID; done");
    assert_eq!(run(&*sandbox, "true").outcome, ProgramOutcome::Exited(0));
}

fn what_lives_is_no_leftover(house: &BackendFixture) {
    let sandbox = house.sandbox();
    assert!(house.backend.reconcile().unwrap().is_empty());
    assert_eq!(run(&*sandbox, "true").outcome, ProgramOutcome::Exited(0));
}

fn what_seals_nothing_says_so_of_every_layer(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let isolation = sandbox.isolation();
    let names: Vec<&str> = isolation.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, LAYERS);
    assert!(isolation.layers.iter().all(|layer| !layer.in_force && layer.detail.contains("seals nothing")));
}
