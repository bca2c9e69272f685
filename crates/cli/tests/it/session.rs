//! Sessions: sandboxes that live on for many commands.

use crate::BELLJAR;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::Write;
use std::process::Stdio;

/// Ends the sessions of a world, also when a test fails.
pub(crate) struct SessionCleanup<'a>(pub(crate) &'a World);

impl Drop for SessionCleanup<'_> {
    fn drop(&mut self) {
        for session in list(self.0) {
            let id = session["id"].as_str().unwrap_or_default();
            let _ = self.0.run(&["session", "end", "--discard", id]);
        }
    }
}

pub(crate) fn list(world: &World) -> Vec<serde_json::Value> {
    world.run(&["session", "list", "--json"]).succeeded().json().as_array().cloned().unwrap_or_default()
}

pub(crate) fn create(world: &World, options: &[&str]) -> String {
    world.run(&[&["session", "create"], options].concat()).succeeded().stdout.trim().to_owned()
}

pub(crate) fn exec(world: &World, session: &str, script: &str) -> ProgramOutput {
    world.run(&["session", "exec", session, "--", "sh", "-c", script])
}

#[test]
fn session_persists_across_commands_and_ends_without_leftovers() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("source/file", "before\n");
        let id = create(world, &["--workspace-copy", "source", "--name", "mine", "-e", "GIVEN=value"]);
        let ran = exec(world, "mine", "cat file; echo \"$GIVEN\"; echo after > file; echo err >&2; exit 3");
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (3, "before\nvalue\n", "err\n"));
        assert_eq!(exec(world, &id[..30], "cat file").succeeded().stdout, "after\n");
        assert_eq!(world.read("source/file"), "before\n");
        let listed = list(world);
        assert_eq!(
            (listed.len(), &listed[0]["id"], &listed[0]["name"]),
            (1, &id.clone().into(), &"mine".into())
        );
        world.run(&["session", "end", "--discard", "mine"]).succeeded();
        assert!(list(world).is_empty());
        assert_eq!(exec(world, "mine", "true").code, 125);
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    });
}

#[test]
fn input_passes_through_and_background_processes_do_not_block_the_caller() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let id = create(world, &[]);
        let mut child = world
            .command(&["session", "exec", &id, "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"through").unwrap();
        assert_eq!(ProgramOutput::from(child.wait_with_output().unwrap()).succeeded().stdout, "through");
        let ran = exec(world, &id, "sleep 600 & echo $! | tee pid").succeeded();
        assert!(!ran.stdout.is_empty());
        exec(world, &id, "kill -0 $(cat pid)").succeeded();
    });
}

#[test]
fn command_is_killed_at_its_timeout_or_without_its_caller_and_the_session_stays() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let id = create(world, &[]);
        let running = || exec(world, &id, "ls /proc | grep -c '^[0-9]'").stdout;
        let alone = running();
        let timed = ["session", "exec", &id, "--timeout", "300ms", "--", "sleep", "600"];
        assert_eq!(world.run(&timed).code, 124);
        let mut caller = world.command(&["session", "exec", &id, "--", "sleep", "600"]).spawn().unwrap();
        until(|| running() != alone);
        caller.kill().unwrap();
        caller.wait().unwrap();
        until(|| running() == alone);
    });
}

#[test]
fn idle_session_and_session_with_a_killed_keeper_end_by_themselves() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        create(world, &["--idle", "300ms"]);
        create(world, &["--timeout", "300ms"]);
        until(|| list(world).is_empty());
        let id = create(world, &[]);
        let runs = world.path().join("state/runs");
        let keeper = keeper_of(&runs.join(&id));
        rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        until(|| list(world).is_empty());
        // Its leftovers are removed when the next one begins.
        let next = create(world, &[]);
        let left: Vec<_> = std::fs::read_dir(&runs).unwrap().map(|run| run.unwrap().file_name()).collect();
        assert_eq!(left, [next.as_str()]);
    });
}

/// Returns the process that holds the lock of that folder.
pub(crate) fn keeper_of(folder: &std::path::Path) -> rustix::process::Pid {
    let holds = |pid: i32| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        links.any(|link| link.starts_with(folder))
    };
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    rustix::process::Pid::from_raw(pids.into_iter().find(|pid| holds(*pid)).unwrap()).unwrap()
}

#[test]
fn session_whose_pid_1_hangs_is_listed_timed_out_and_ended() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let (stuck, other) = (create(world, &["--name", "stuck"]), create(world, &["--name", "other"]));
        let mark = format!("3600.{}", std::process::id());
        exec(world, "stuck", &format!("sleep {mark} >/dev/null 2>&1 &")).succeeded();
        let first = parent_of_sleep(&mark);
        rustix::process::kill_process(first, rustix::process::Signal::STOP).unwrap();
        let begun = std::time::Instant::now();
        let listed = list(world);
        let memory = |id: &str| listed.iter().find(|one| one["id"] == id).map(|one| one["load"].is_null());
        assert_eq!((memory(&stuck), memory(&other)), (Some(true), Some(false)), "{listed:?}");
        let ran = world.run(&["session", "exec", "--timeout", "1s", "stuck", "--", "true"]);
        assert_eq!(ran.code, 124, "{ran:?}");
        // The control: the other session does all of that.
        world.run(&["session", "exec", "--timeout", "30s", "other", "--", "true"]).succeeded();
        world.run(&["session", "end", "--discard", "stuck"]).succeeded();
        assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
        assert_eq!(list(world).len(), 1);
    });
}

/// Returns the parent of a sandbox's orphaned program, as the host sees it: the sandbox's PID 1.
pub(crate) fn parent_of_sleep(mark: &str) -> rustix::process::Pid {
    let find = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.map(|process| process.path()).find_map(|process| {
            let arguments = std::fs::read(process.join("cmdline")).ok()?;
            (arguments == format!("sleep\0{mark}\0").as_bytes()).then_some(())?;
            let status = std::fs::read_to_string(process.join("status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())?;
            let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
            (name.trim() == "belljar-init").then(|| rustix::process::Pid::from_raw(parent))?
        })
    };
    let mut found = None;
    until(|| {
        found = find();
        found.is_some()
    });
    found.unwrap()
}
