//! A sandbox that lacks a wall is refused at launch: before any program runs in it, with the name of the layer, and
//! without leftovers.

use crate::belljar::belljar;
use crate::tally::{Tally, Verdict};
use belljar_confine::removal::{VARIABLE, Wall};
use belljar_testkit::world::{ProgramOutput, World};
use rustix::process::{getpid, set_child_subreaper};
use std::fs;
use std::time::{Duration, Instant};

/// The walls whose absence is visible from outside or to PID 1, each with the layer that the message names.
const SEEN: [(Wall, &str); 13] = [
    (Wall::PidNamespace, "pid_namespace"),
    (Wall::NetworkNamespace, "network_namespace"),
    (Wall::IpcNamespace, "ipc_namespace"),
    (Wall::UtsNamespace, "uts_namespace"),
    (Wall::CgroupNamespace, "cgroup_namespace"),
    (Wall::InsideUser, "user_namespace"),
    (Wall::ScratchSize, "scratch_limit"),
    (Wall::BoundingSet, "capabilities"),
    (Wall::Capabilities, "capabilities"),
    (Wall::NoNewPrivileges, "no_new_privs"),
    (Wall::NotDumpable, "pid_namespace"),
    (Wall::SystemCalls, "seccomp"),
    (Wall::Landlock, "landlock"),
];

#[test]
fn sandbox_with_a_missing_wall_is_refused_before_any_program_runs() {
    // Processes that outlive belljar become children of this process, so that they are found.
    set_child_subreaper(Some(getpid())).unwrap();
    let tally = Tally::new("canary");
    World::as_everyone(belljar(), |world| {
        let inherited = std::env::var(VARIABLE).unwrap_or_default();
        let whole = launch(world, &inherited).succeeded();
        assert_eq!(whole.stdout, "ran\n");
        tally.count("canary", "canary a whole sandbox", &place(world), Verdict::Held);
        for (wall, layer) in seen() {
            let name = wall.as_str();
            let control = launch(world, &format!("{name},{}", Wall::Canary.as_str()));
            let refused = launch(world, &format!("{name},{inherited}"));
            let verdict = match (control.stdout.as_str(), control.code) {
                ("ran\n", 0) => judge(&refused, layer),
                _ => Verdict::Invalid(format!("no sandbox without it: {control:?}")),
            };
            tally.count("canary", &format!("canary without {name}"), &place(world), verdict);
        }
    });
    tally.close();
}

fn seen() -> impl Iterator<Item = (Wall, &'static str)> {
    let has_landlock = belljar_confine::landlock_abi() > 0;
    SEEN.into_iter().filter(move |(wall, _)| has_landlock || *wall != Wall::Landlock)
}

fn place(world: &World) -> String {
    format!("{:?}", world.user())
}

fn launch(world: &World, without: &str) -> ProgramOutput {
    fs::create_dir_all(world.path().join("source")).unwrap();
    let arguments = ["exec", "--workspace-copy", "source", "--", "echo", "ran"];
    ProgramOutput::from(world.command(&arguments).env(VARIABLE, without).output().unwrap())
}

fn judge(refused: &ProgramOutput, layer: &str) -> Verdict {
    let told = format!("the layer {layer} is not in force");
    match left() {
        _ if refused.stdout.contains("ran") => Verdict::Escaped("it ran".to_owned()),
        _ if refused.code != 125 || !refused.stderr.contains(&told) => {
            Verdict::Escaped(format!("{}, {:?}", refused.code, refused.stderr))
        }
        left if !left.is_empty() => Verdict::Escaped(format!("left: {left:?}")),
        _ => Verdict::Held,
    }
}

/// Returns the processes that are still there after a moment. Without a PID namespace of their own, processes don't end
/// with PID 1, but when they notice that the host process is gone.
fn left() -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match children() {
            left if left.is_empty() || Instant::now() > deadline => return left,
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Returns the live children of this process that belljar started.
fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<String> =
        children.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let stat = |pid: &String| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let lives = |stat: &String| stat.contains("(belljar") && !stat.contains(") Z ");
    children.iter().map(stat).filter(lives).collect()
}
