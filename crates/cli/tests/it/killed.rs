//! Belljar is killed at any moment: the next command leaves no trace of it, and doesn't touch other sandboxes.

use crate::BELLJAR;
use belljar_sandbox::state::StateDirectory;
use belljar_testkit::job::job;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Moments of a launch, which takes a few milliseconds, and of the time after it.
const DELAYS_MS: [u64; 14] = [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 25, 40, 120];

#[test]
fn resources_of_a_run_killed_at_any_moment_are_removed_by_the_next_run() {
    World::as_everyone(BELLJAR, |world| {
        let file = world.write("source/file", "content\n");
        let source = file.parent().unwrap().display().to_string();
        // The mark in the arguments identifies every process of this test.
        let mark = format!("60{}", std::process::id());
        let script = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
        world.write(
            "job.json",
            job(&json!([{ "type": "run_command", "args": { "argv": ["sh", "-c", script] } }])).to_string(),
        );
        let neighbour = world.path().join("neighbour");
        let theirs = |arguments: &[&str]| {
            let ran = world.command(arguments).env("BELLJAR_STATE_DIR", &neighbour).output().unwrap();
            belljar_testkit::world::ProgramOutput::from(ran).succeeded()
        };
        let session = theirs(&["session", "create"]).stdout.trim().to_owned();
        let ways: [&[&str]; 4] = [
            &["exec", "--workspace-copy", &source, "--", "sh", "-c", &script],
            &["exec", "--", "sh", "-c", &script],
            &["run", "--workspace-copy", &source, "job.json"],
            &["session", "create", "--workspace-copy", &source],
        ];
        for (turn, delay) in DELAYS_MS.into_iter().cycle().take(ways.len() * DELAYS_MS.len()).enumerate() {
            let way = ways[turn % ways.len()];
            let mut belljar = world.command(way).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            belljar.kill().unwrap();
            belljar.wait().unwrap();
        }
        // Keepers live on without the command that started them; they are killed, too, even those that haven't reported
        // readiness yet.
        until(|| {
            for keeper in keepers(world) {
                let _ = kill_process(keeper, Signal::KILL);
            }
            world.run(&["exec", "--workspace-copy", &source, "--", "true"]).succeeded();
            folders(world).is_empty()
        });
        let deployment = StateDirectory::at(world.path().join("state")).deployment();
        until(|| processes(&mark).is_empty());
        until(|| groups(world, &deployment).is_empty());
        let told = theirs(&["session", "exec", &session, "--", "echo", "alive"]);
        assert_eq!(told.stdout, "alive\n");
        theirs(&["session", "end", &session]);
    });
}

/// Returns the processes that hold a file in the folder of a run.
fn keepers(world: &World) -> Vec<Pid> {
    let runs = world.path().join("state/runs");
    let holds = |pid: &Pid| {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
        let links = descriptors.into_iter().flatten().flatten();
        let mut links = links.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        links.any(|link| link.starts_with(&runs))
    };
    everybody().filter(holds).collect()
}

fn everybody() -> impl Iterator<Item = Pid> {
    let listed = std::fs::read_dir("/proc").unwrap().flatten();
    listed.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn processes(mark: &str) -> Vec<Pid> {
    let is_marked = |pid: &Pid| {
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    everybody().filter(is_marked).collect()
}

fn groups(world: &World, deployment: &str) -> Vec<PathBuf> {
    let parents = std::fs::read_to_string(world.path().join("state/control-groups")).unwrap_or_default();
    let below = |parent: &str| std::fs::read_dir(parent).into_iter().flatten().flatten().collect::<Vec<_>>();
    let all = parents.lines().flat_map(below);
    let ours = all.filter(|entry| entry.file_name().to_string_lossy().contains(deployment));
    ours.map(|entry| entry.path()).collect()
}

fn folders(world: &World) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(world.path().join("state/runs")).into_iter().flatten().flatten();
    runs.map(|run| run.path()).filter(|path| path.is_dir()).collect()
}
