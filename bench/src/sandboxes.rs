//! Sandboxes of a long-lived process: the time from creation to removal, a program in a live sandbox, sandboxes per second,
//! many concurrent ones, and leftovers of many.

use crate::contest::{Contestant, hold, judge, missing};
use crate::history;
use crate::{Programs, floor, installed};
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_sandbox::backend::{Backend, Sandbox, SandboxRequest};
use belljar_sandbox::limits::Limits;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::spec::Program;
use belljar_sandbox::state::StateDirectory;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::path::Path;
use std::process::{Command, Stdio as Streams};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TURNS: usize = 300;

/// A backend that starts before anything else runs in this process.
pub(crate) struct EarlyBackend {
    backend: NativeBackend,
    state: tempfile::TempDir,
}

// === impl EarlyBackend ===

impl EarlyBackend {
    pub(crate) fn new(spares: usize) -> Self {
        let state = tempfile::tempdir().expect("a temporary folder");
        std::fs::set_permissions(state.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("an open folder");
        let launcher = Arc::new(Launcher::start().expect("a launcher: nothing else runs here yet"));
        let backend = NativeBackend::for_many(launcher, StateDirectory::at(state.path()), spares);
        Self { backend, state }
    }

    /// Makes a sandbox like a node, from creation to removal, with `/bin/true` in it.
    pub(crate) fn turn(&self) {
        cold_turn(self, Limits::default());
    }

    fn sandbox(&self, limits: Limits) -> Box<dyn Sandbox> {
        let provision = Provision { limits, ..Provision::default() };
        let wanted = SandboxRequest { provision, ..SandboxRequest::default() };
        self.backend.create(wanted).expect("a sandbox")
    }
}

/// Returns limits without a control group, because the peers have none, either.
fn ungrouped() -> Limits {
    Limits { memory_bytes: None, ..Limits::default() }
}

fn run_true(sandbox: &dyn Sandbox) {
    let null = || openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).expect("/dev/null");
    let program = Program { argv: vec!["/bin/true".into()], directory: "/".to_owned() };
    let stdio = Stdio::Descriptors([null(), null(), null()]);
    let mut execution = sandbox.exec(&program, stdio).expect("a program");
    let ending = execution.wait_until(None).expect("an ending").expect("an ending");
    assert_eq!(ending.outcome.exit_code(), 0);
}

/// Measures a sandbox from creation to removal, with `/bin/true` in it.
pub(crate) fn cold(_: &Programs) -> bool {
    let (house, made_ahead) = (EarlyBackend::new(0), EarlyBackend::new(2));
    let Some(bwrap) = installed(&["bwrap"]) else { return missing("bwrap") };
    let times = hold(
        "cold: a sandbox from nothing to gone, with /bin/true in it, in a long-lived process",
        TURNS,
        vec![
            contestant("belljar, made ahead", || cold_turn(&made_ahead, ungrouped())),
            contestant("belljar, made when asked for", || cold_turn(&house, ungrouped())),
            contestant("belljar, made when asked for, with a control group", || {
                cold_turn(&house, Limits::default());
            }),
            contestant("the floor: the same namespaces and mounts, and nothing else", floor::once),
            Contestant::command("bwrap --unshare-all … /bin/true", || bubblewrap(&bwrap)).prepared(rest),
            Contestant::command("/bin/true, not sealed", || Command::new("/bin/true")).prepared(rest),
        ],
    );
    let met = judge(&times[0], &times[3], 1.2) & judge(&times[0], &times[4], 0.2);
    judge(&times[1], &times[3], 1.2) & met
}

fn cold_turn(house: &EarlyBackend, limits: Limits) {
    let sandbox = house.sandbox(limits);
    run_true(&*sandbox);
    sandbox.destroy().expect("an end");
}

/// Measures a program in a live sandbox.
pub(crate) fn warm(_: &Programs) -> bool {
    let house = EarlyBackend::new(0);
    let sandbox = house.sandbox(ungrouped());
    let times = hold(
        "warm: /bin/true in a sandbox that lives",
        TURNS,
        vec![
            contestant("belljar", || run_true(&*sandbox)),
            Contestant::command("posix_spawn and wait, not sealed", || Command::new("/bin/true"))
                .prepared(rest),
        ],
    );
    judge(&times[0], &times[1], 1.3)
}

/// Measures both, compared with a container engine.
pub(crate) fn docker(_: &Programs) -> bool {
    const FEW: usize = 30;
    let house = EarlyBackend::new(2);
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(why) => return missing(&format!("docker ({why})")),
    };
    let run = |arguments: &[&str]| drop(docker.command(arguments).expect("a container"));
    let sealed = ["--network", "none", "--read-only", "--cap-drop", "ALL", IMAGE];
    run(&[&["run", "--detach", "--name", "warm"][..], &sealed, &["/bin/sleep", "600"]].concat());
    let warm = house.sandbox(ungrouped());
    let times = hold(
        "docker: the same by a container engine",
        FEW,
        vec![
            contestant("belljar, from nothing to gone", || cold_turn(&house, ungrouped())),
            contestant("docker run --rm", || {
                run(&[&["run", "--rm"][..], &sealed, &["/bin/true"]].concat());
            }),
            contestant("belljar, in a sandbox that lives", || run_true(&*warm)),
            contestant("docker exec", || run(&["exec", "warm", "/bin/true"])),
        ],
    );
    let met = judge(&times[0], &times[1], 0.01);
    judge(&times[2], &times[3], 0.02) & met
}

fn contestant<'a>(name: &'a str, turn: impl FnMut() + 'a) -> Contestant<'a> {
    Contestant { name, prepare: Box::new(rest), turn: Box::new(turn) }
}

/// Pauses between turns, so that background work of one, such as refilling the warm pool, doesn't slow down the next.
fn rest() {
    std::thread::sleep(Duration::from_millis(8));
}

pub(crate) fn bubblewrap(bwrap: &Path) -> Command {
    let mut command = Command::new(bwrap);
    let root =
        ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"];
    command.args(root).arg("/bin/true");
    command
}

/// Measures sandboxes per second with two workers, for a minute. They take turns, because a machine's speed varies.
pub(crate) fn rate(_: &Programs) -> bool {
    const ROUNDS: u32 = 6;
    const ROUND: Duration = Duration::from_secs(10);
    let houses = [EarlyBackend::new(0), EarlyBackend::new(0)];
    let Some(bwrap) = installed(&["bwrap"]) else { return missing("bwrap") };
    let (mut ours, mut theirs) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        ours += sustained(ROUND, |worker| cold_turn(&houses[worker], ungrouped())) / f64::from(ROUNDS);
        theirs += sustained(ROUND, |_| {
            let status = bubblewrap(&bwrap).stdin(Streams::null()).stdout(Streams::null()).status();
            assert!(status.expect("bwrap").success());
        }) / f64::from(ROUNDS);
    }
    println!("\n## rate: sandboxes a second, two workers, each from nothing to gone\n");
    println!("| | a second |\n| --- | --- |\n| belljar | {ours:.0} |\n| bwrap | {theirs:.0} |");
    let ratio = ours / theirs;
    let met = ratio >= 2.2;
    history::note(ratio, met);
    println!(
        "\nbelljar / bwrap = **{ratio:.2}** (goal: at least 2.2): {}",
        if met { "met" } else { "MISSED" }
    );
    met
}

fn sustained(lasts: Duration, turn: impl Fn(usize) + Sync) -> f64 {
    let begun = Instant::now();
    let turns: usize = std::thread::scope(|scope| {
        let turn = &turn;
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                scope.spawn(move || {
                    let mut turns = 0;
                    while begun.elapsed() < lasts {
                        turn(worker);
                        turns += 1;
                    }
                    turns
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
    });
    turns as f64 / begun.elapsed().as_secs_f64()
}

/// Measures the memory of each of a thousand concurrent idle sandboxes.
pub(crate) fn density(_: &Programs) -> bool {
    const COUNT: usize = 1_000;
    let house = EarlyBackend::new(0);
    let before = available_kib();
    let begun = Instant::now();
    let sandboxes: Vec<_> = (0..COUNT).map(|_| house.sandbox(ungrouped())).collect();
    let made = begun.elapsed();
    let taken = before.saturating_sub(available_kib()) / COUNT;
    let (count, pss) = pss_of_inits();
    let begun = Instant::now();
    drop(sandboxes);
    println!("\n## density: {COUNT} idle sandboxes at once\n");
    println!(
        "| | |\n| --- | --- |\n| made in | {:.1} s |\n| gone in | {:.1} s |",
        made.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    println!("| PSS of each ({count} found) | {pss} KiB |\n| of all memory, each | {taken} KiB |");
    let met = count == COUNT && pss < 256 && taken < 768;
    for (kib, most) in [(pss, 256), (taken, 768)] {
        history::note(kib as f64, count == COUNT && kib < most);
    }
    println!(
        "\ngoal: PSS under 256 KiB, of all memory under 768 KiB: {}",
        if met { "met" } else { "MISSED" }
    );
    met
}

fn available_kib() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).expect("a number")
}

/// Returns the number of PID 1 processes, and their mean memory.
fn pss_of_inits() -> (usize, usize) {
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let of_one = |entry: std::fs::DirEntry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        let rollup = std::fs::read_to_string(entry.path().join("smaps_rollup")).ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kib: usize = line.split_whitespace().next()?.parse().ok()?;
        (name.trim() == "belljar-init").then_some(kib)
    };
    let all: Vec<usize> = pids.filter_map(of_one).collect();
    (all.len(), all.iter().sum::<usize>() / all.len().max(1))
}

/// Makes ten thousand sandboxes, one after another, and checks that nothing is left of them.
pub(crate) fn churn(_: &Programs) -> bool {
    const COUNT: usize = 10_000;
    let house = EarlyBackend::new(0);
    run_true(&*house.sandbox(Limits::default()));
    let before = left(&house);
    let begun = Instant::now();
    for _ in 0..COUNT {
        let sandbox = house.sandbox(Limits::default());
        run_true(&*sandbox);
        sandbox.destroy().expect("an end");
    }
    let (after, took) = (left(&house), begun.elapsed().as_secs_f64());
    println!("\n## churn: {COUNT} sandboxes with a control group, one after the other, in {took:.0} s\n");
    println!("| left of | before | after |\n| --- | --- | --- |");
    for ((what, before), (_, after)) in before.iter().zip(&after) {
        println!("| {what} | {before} | {after} |");
    }
    let met = before == after;
    history::note(took, met);
    println!("\ngoal: nothing is left: {}", if met { "met" } else { "MISSED" });
    met
}

/// Returns the number of leftovers of each kind.
fn left(house: &EarlyBackend) -> Vec<(&'static str, usize)> {
    let count = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
    let named = |name: &str| {
        let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
        let names = pids.filter_map(|pid| std::fs::read_to_string(pid.path().join("comm")).ok());
        names.filter(|found| found.trim() == name).count()
    };
    let groups = std::fs::read_to_string(house.state.path().join("control-groups")).unwrap_or_default();
    let deployment = StateDirectory::at(house.state.path()).deployment();
    let below = |parent: &str| std::fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = groups.lines().flat_map(below);
    vec![
        ("first processes", named("belljar-init")),
        ("mounts", std::fs::read_to_string("/proc/self/mounts").expect("mounts").lines().count()),
        (
            "control groups",
            ours.filter(|one| one.file_name().to_string_lossy().contains(&deployment)).count(),
        ),
        ("folders", count(&house.state.path().join("runs"))),
        ("descriptors", count(Path::new("/proc/self/fd"))),
    ]
}
