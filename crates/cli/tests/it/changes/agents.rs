//! Agents: no changes are lost by a conflict, a missing `--trust` or a clone that isn't pushed.

use super::{folders, ids, only};
use crate::BELLJAR;
use crate::agents::small::SmallAgentWorld;
use crate::git::rig::GitFixture;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

/// Returns the processes with that argument.
fn processes(mark: &str) -> Vec<Pid> {
    let listed = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = listed.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let is_marked = |pid: &Pid| {
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    pids.filter(is_marked).collect()
}

#[test]
fn conflicting_file_is_kept_and_reported_and_the_rest_is_applied() {
    World::as_everyone(BELLJAR, |world| {
        // When it sleeps it has written its changes; killing the sleep ends it.
        let mark = format!("73{}", std::process::id());
        let script = format!("echo agent > greeting.txt; echo agent > new; sleep {mark}; true");
        let small = SmallAgentWorld::shell(world, &script);
        for options in [&["--apply", "--json"][..], &["--apply"][..]] {
            world.write("project/greeting.txt", "first line\nhello world\nlast line\n");
            let _ = std::fs::remove_file(world.path().join("project/new"));
            let child = small.command(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            until(|| !processes(&mark).is_empty());
            world.write("project/greeting.txt", "person\n");
            for pid in processes(&mark) {
                let _ = kill_process(pid, Signal::TERM);
            }
            let ran = ProgramOutput::from(child.wait_with_output().unwrap());
            assert_eq!(ran.code, 5, "{ran:?}");
            let id = only(world);
            assert!(ran.stderr.contains(&format!("kept as {id}")), "{ran:?}");
            if options.contains(&"--json") {
                let result: Value = ran.json();
                let changes = &result["changes"];
                assert_eq!(
                    (&changes["state"], &changes["id"]),
                    (&json!("conflict"), &json!(id)),
                    "{result:#}"
                );
                assert_eq!(changes["conflicts"], json!(["greeting.txt"]));
                assert!(result["diff"].as_str().unwrap().contains("+agent\n"), "{result:#}");
            } else {
                assert!(ran.stderr.contains("+agent") && ran.stderr.contains("! greeting.txt"), "{ran:?}");
            }
            assert_eq!(
                (world.read("project/greeting.txt"), world.read("project/new")),
                ("person\n".into(), "agent\n".into())
            );
            world.run(&["changes", "apply", &id, "--overwrite", "greeting.txt"]).succeeded();
            assert_eq!(world.read("project/greeting.txt"), "agent\n");
            assert_eq!(folders(world), Vec::<String>::new());
        }
    });
}

#[test]
fn agent_run_without_flags_or_trust_keeps_its_changes() {
    World::as_everyone(BELLJAR, |world| {
        let small = SmallAgentWorld::shell(world, "echo 'all:' > Makefile");
        let result = small.run(&["--json", "--apply"]);
        let id = only(world);
        assert_eq!((result.code, &result.json()["changes"]["state"]), (3, &json!("kept")), "{result:?}");
        assert_eq!(result.json()["run_id"], json!(id));
        world.run(&["changes", "rm", &id]).succeeded();
        let result = small.json(&[]);
        assert_eq!(
            result["changes"],
            json!({ "id": only(world), "state": "kept", "conflicts": [], "changed_in_source": [] })
        );
        let shown = world.run(&["changes", "diff", &only(world)]).succeeded().stdout;
        assert!(shown.contains("+all:") && !shown.contains(".cogni"), "{shown}");
        assert_eq!(small.json(&["--discard"])["changes"]["state"], "discarded");
        assert_eq!(ids(world).len(), 1);
    });
}

#[test]
fn unpushed_clone_is_kept_and_can_be_pushed_later_by_one_command() {
    let test = "unpushed_clone_is_kept_and_can_be_pushed_later_by_one_command";
    let Some(rig) = GitFixture::with(test, World::new(BELLJAR), &[("README.md", "hello\n")]) else { return };
    let world = &rig.world;
    let _small = SmallAgentWorld::shell(world, "echo work > work.txt");
    let network = ["--allow-network", "127.0.0.0/8"];
    let agent = ["agent", "small", "--model", "small", "--config", "config.yaml", "--clone", &rig.url];
    let ran = world.run(&[&agent[..], &network, &["--json", "--", "hi"]].concat()).succeeded();
    let id = only(world);
    assert_eq!(ran.json()["changes"]["id"], json!(id));
    assert!(ran.stderr.contains(&format!("`belljar changes push {id}` pushes them")), "{ran:?}");
    let diff = world.run(&["changes", "diff", &id]).succeeded().stdout;
    assert!(diff.contains("b/work.txt") && diff.contains("+work\n"), "{diff}");
    let refused = world.run(&[&["changes", "push", &id, "--branch", "main"], &network[..]].concat());
    assert_ne!(refused.code, 0, "{refused:?}");
    assert_eq!(ids(world), std::slice::from_ref(&id));
    world.run(&[&["changes", "push", &id], &network[..]].concat()).succeeded();
    assert_eq!(rig.tree(&format!("belljar/{id}")), ["100644 README.md", "100644 work.txt"]);
    assert_eq!(folders(world), Vec::<String>::new());
}

#[test]
fn paths_that_a_push_leaves_out_are_listed_and_kept() {
    let files = [("README.md", "hello\n"), (".gitignore", "out/\n*.log\n")];
    let Some(rig) =
        GitFixture::with("paths_that_a_push_leaves_out_are_listed_and_kept", World::new(BELLJAR), &files)
    else {
        return;
    };
    let world = &rig.world;
    let script = "mkdir -p out sub/.git; echo report > out/report; echo log > run.log; echo thesis > sub/.git/thesis; \
                  echo work > work.txt";
    let _small = SmallAgentWorld::shell(world, script);
    let network = ["--allow-network", "127.0.0.0/8"];
    let agent = ["agent", "small", "--model", "small", "--config", "config.yaml", "--clone", &rig.url];
    let is_kept = |id: &str| {
        let shown = world.run(&["changes", "show", id, "--json"]).succeeded().json();
        let folder = std::path::PathBuf::from(shown["path"].as_str().unwrap());
        let found = std::process::Command::new("find").arg(folder).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        ["out/report", "run.log", "sub/.git/thesis"].iter().all(|path| found.contains(path))
    };
    let ran = world.run(&[&agent[..], &network, &["--push", "--json", "--", "hi"]].concat()).succeeded();
    let (result, id) = (ran.json(), only(world));
    assert_eq!((&result["push"]["outcome"], &result["changes"]["id"]), (&json!("pushed"), &json!(id)));
    assert_eq!(result["push"]["ignored"], json!(["out/", "run.log"]), "{result:#}");
    assert_eq!(result["push"]["left_out"], json!(["sub/.git"]), "{result:#}");
    assert!(is_kept(&id));
    let again = world.run(&[&["changes", "push", &id], &network[..]].concat()).succeeded();
    for text in
        ["run.log was left out", "sub/.git was left out", &format!("`belljar changes rm {id}` deletes")]
    {
        assert!(again.stderr.contains(text), "{text}: {again:?}");
    }
    assert!(is_kept(&id));
    world.run(&["changes", "rm", &id]).succeeded();
    // The control: the change set is removed when it is empty.
    let script = "echo more > more.txt";
    let _small = SmallAgentWorld::shell(world, script);
    world.run(&[&agent[..], &network, &["--push", "--", "hi"]].concat()).succeeded();
    assert_eq!(folders(world), Vec::<String>::new());
}
