//! Tests of resource limits, and of sandboxes that exceed them.

use crate::BackendCase;
use crate::house::{BackendFixture, run, start, wait};
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::isolation::RequiredLayers;
use belljar_sandbox::backend::{BackendError, Sandbox, SandboxRequest};
use belljar_sandbox::limits::{Limit, Limits};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_testkit::wait::until;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const CASES: &[BackendCase] = &[
    ("memory_that_is_used_up_ends_the_sandbox", memory_that_is_used_up_ends_the_sandbox),
    ("memory_within_the_limit_is_given", memory_within_the_limit_is_given),
    ("processes_beyond_the_limit_are_refused", processes_beyond_the_limit_are_refused),
    ("processor_time_is_shared_out", processor_time_is_shared_out),
    ("what_grows_on_disk_beyond_the_limit_ends_the_sandbox", what_grows_on_disk_beyond_the_limit_ends_it),
    ("scratch_beyond_the_limit_is_refused", scratch_beyond_the_limit_is_refused),
    ("open_files_beyond_the_limit_are_refused", open_files_beyond_the_limit_are_refused),
    ("a_required_layer_that_is_missing_makes_no_sandbox", a_required_layer_that_is_missing_makes_none),
    ("every_limit_is_reported", every_limit_is_reported),
];

const MEGABYTE: u64 = 1 << 20;

fn limited(house: &BackendFixture, change: impl FnOnce(&mut Limits)) -> Box<dyn Sandbox> {
    let mut limits = Limits::default();
    change(&mut limits);
    house
        .backend
        .create(BackendFixture::wanted_with(
            WorkspaceChoice::Empty,
            Provision { limits, ..Provision::default() },
        ))
        .unwrap()
}

/// Returns true if a layer is in force, according to the sandbox's isolation report.
pub(crate) fn has(sandbox: &dyn Sandbox, layer: &str) -> bool {
    let layers = &sandbox.isolation().layers;
    let layer = layers.iter().find(|found| found.name == layer).unwrap();
    layer.in_force
}

/// Holds all its input in memory, because it has no end of line.
const TAKES_200_MEGABYTES: &str = "head -c 200m /dev/zero | tail | wc -c";

fn memory_that_is_used_up_ends_the_sandbox(house: &BackendFixture) {
    let sandbox = limited(house, |limits| limits.memory_bytes = Some(96 * MEGABYTE));
    if !has(&*sandbox, "memory_limit") {
        return house.skip("memory_limit");
    }
    let mut other = start(&*sandbox, "sleep 600");
    // Where the kernel kills only one, the others may see that before they are ended, too.
    let ran = run(&*sandbox, &format!("{TAKES_200_MEGABYTES}; sleep 5; echo went on; sleep 600"));
    assert_eq!(ran.outcome, ProgramOutcome::Killed);
    assert!(!ran.stdout.contains("went on"), "{ran:?}");
    assert_eq!(wait(other.as_mut()), ProgramOutcome::Killed);
    assert_eq!(sandbox.ended_by(), Some(Limit::Memory));
}

fn memory_within_the_limit_is_given(house: &BackendFixture) {
    let sandbox = limited(house, |limits| limits.memory_bytes = Some(800 * MEGABYTE));
    assert_eq!(run(&*sandbox, TAKES_200_MEGABYTES).stdout.trim(), (200 * MEGABYTE).to_string());
    assert_eq!(sandbox.ended_by(), None);
}

const STARTS_FORTY: &str = "for i in $(seq 40); do sleep 600 > /dev/null 2>&1 & done";

fn processes_beyond_the_limit_are_refused(house: &BackendFixture) {
    let few = limited(house, |limits| limits.processes = 20);
    if !has(&*few, "process_limit") {
        return house.skip("process_limit");
    }
    let ran = run(&*few, STARTS_FORTY);
    assert!(ran.stderr.to_lowercase().contains("fork"), "{ran:?}");
    let started = few.stats().unwrap().processes;
    assert!((10..=20).contains(&started), "{started}");
    let many = limited(house, |limits| limits.processes = 200);
    run(&*many, STARTS_FORTY);
    // One that has just ended may be counted for a moment.
    until(|| many.stats().is_ok_and(|stats| stats.processes == 40));
}

fn processor_time_is_shared_out(house: &BackendFixture) {
    let spin = "timeout 1 sh -c 'while :; do :; done' & timeout 1 sh -c 'while :; do :; done'; wait";
    let limits = Limits { millicpus: Some(200), ..Limits::default() };
    let limited = match house.backend.create(BackendFixture::wanted_with(
        WorkspaceChoice::Empty,
        Provision { limits, ..Provision::default() },
    )) {
        // A required limit is in force, or there is no sandbox.
        Err(BackendError::Weaker { missing, .. })
            if missing.iter().all(|layer| layer.name == "cpu_limit") =>
        {
            return house.skip("cpu_limit");
        }
        made => made.unwrap(),
    };
    if !has(&*limited, "cpu_limit") {
        return house.skip("cpu_limit");
    }
    let begun = Instant::now();
    run(&*limited, spin);
    let lasted = begun.elapsed();
    let free = house.sandbox();
    run(&*free, spin);
    let (limited, free) = (limited.stats().unwrap().cpu, free.stats().unwrap().cpu);
    // A fifth of that time and what is left of a period, against up to twice that time.
    assert!(limited < lasted / 5 + Duration::from_millis(300), "{limited:?} in {lasted:?}");
    assert!(free > limited, "{free:?} {limited:?}");
}

/// Request with a copy of a directory, and that disk quota.
fn on_disk(source: &TempDir, disk_bytes: u64) -> SandboxRequest {
    let path = belljar_files::host_path::HostPath::resolve(source.path()).unwrap();
    let limits = Limits { disk_bytes: Some(disk_bytes), ..Limits::default() };
    BackendFixture::wanted_with(WorkspaceChoice::Copy(path), Provision { limits, ..Provision::default() })
}

fn what_grows_on_disk_beyond_the_limit_ends_it(house: &BackendFixture) {
    let source = tempfile::tempdir().unwrap();
    let wanted = |disk| on_disk(&source, disk);
    let fill = "head -c 40m /dev/zero > large && echo written";
    let small = house.backend.create(wanted(8 * MEGABYTE)).unwrap();
    if !has(&*small, "disk_limit") {
        return house.skip("disk_limit");
    }
    let ran = run(&*small, &format!("{fill}; sleep 600"));
    // A backend with a real quota refuses, others end it.
    if ran.outcome == ProgramOutcome::Killed {
        assert_eq!(small.ended_by(), Some(Limit::Disk));
    }
    let large = house.backend.create(wanted(400 * MEGABYTE)).unwrap();
    assert_eq!(run(&*large, fill).stdout, "written\n");
    assert_eq!(large.ended_by(), None);
}

fn scratch_beyond_the_limit_is_refused(house: &BackendFixture) {
    let fill = "head -c 40m /dev/zero > $TMPDIR/large && echo written";
    let small = limited(house, |limits| limits.scratch_bytes = 8 * MEGABYTE);
    if !has(&*small, "scratch_limit") {
        return house.skip("scratch_limit");
    }
    // Programs word it differently: what counts is that no more is there.
    let ran = run(&*small, &format!("{fill}; wc -c < $TMPDIR/large"));
    let there: u64 = ran.stdout.trim().parse().unwrap_or(u64::MAX);
    assert!(there <= 8 * MEGABYTE, "{ran:?}");
    assert_eq!(run(&*house.sandbox(), fill).stdout, "written\n");
}

fn open_files_beyond_the_limit_are_refused(house: &BackendFixture) {
    let few = limited(house, |limits| limits.open_files = 64);
    if !has(&*few, "resource_limits") {
        return house.skip("resource_limits");
    }
    assert_eq!(run(&*few, "ulimit -n; ulimit -Hn").stdout, "64\n64\n");
    let ran = run(&*few, "ulimit -n 65");
    assert_ne!(ran.outcome, ProgramOutcome::Exited(0));
}

fn a_required_layer_that_is_missing_makes_none(house: &BackendFixture) {
    // Not required, and so not in force anywhere.
    let required = RequiredLayers::parse(["cpu_limit".to_owned()]).unwrap();
    let wanted =
        BackendFixture::wanted_with(WorkspaceChoice::Empty, Provision { required, ..Provision::default() });
    match house.backend.create(wanted) {
        Err(BackendError::Weaker { missing, .. }) => assert_eq!(missing[0].name, "cpu_limit"),
        other => panic!("{other:?}"),
    }
    let sandbox = house.sandbox();
    let present = sandbox.isolation().layers.iter().filter(|layer| layer.in_force);
    let required = RequiredLayers::parse(present.map(|layer| layer.name.clone())).unwrap();
    house
        .backend
        .create(BackendFixture::wanted_with(
            WorkspaceChoice::Empty,
            Provision { required, ..Provision::default() },
        ))
        .unwrap();
}

fn every_limit_is_reported(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let reported: Vec<_> = sandbox.isolation().layers.iter().map(|layer| layer.name.as_str()).collect();
    for layer in belljar_contract::isolation::LAYERS {
        assert!(reported.contains(&layer), "{layer} is missing in {reported:?}");
    }
    assert_eq!(reported.len(), belljar_contract::isolation::LAYERS.len());
}
