//! Killed processes: the changes of the run or session up to then become a kept change set.

use super::{folders, list, only};
use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec, keeper_of};
use belljar_testkit::job::{job, shell};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::io::Read;
use std::process::Stdio;

#[test]
fn changes_of_a_run_whose_belljar_was_killed_are_kept() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let script = "echo after > file; echo written; sleep 600";
        world.write(
            "job.json",
            job(&json!([shell(&script.replace("echo written", "touch /job/artifacts/written"))])).to_string(),
        );
        let exec = ["exec", "--workspace-copy", "source", "--", "sh", "-c", script];
        let run = ["run", "--workspace-copy", "source", "job.json"];
        let elsewhere = [&["exec", "--backend", "subprocess"], &exec[1..]].concat();
        let ways: [(&str, &[&str]); 3] = [("exec", &exec), ("run", &run), ("exec", &elsewhere)];
        for (kind, way) in ways {
            let mut belljar =
                world.command(way).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            if kind == "exec" {
                let mut said = [0; 8];
                belljar.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
            } else {
                until(|| {
                    let runs =
                        std::fs::read_dir(world.path().join("state/runs")).into_iter().flatten().flatten();
                    runs.into_iter().any(|run| run.path().join("private/job/artifacts/written").exists())
                });
            }
            belljar.kill().unwrap();
            belljar.wait().unwrap();
            until(|| !list(world).is_empty());
            let kept = list(world).remove(0);
            assert_eq!((&kept["kind"], &kept["was_cut_off"]), (&json!(kind), &json!(true)), "{kept}");
            let id = only(world);
            let diff = world.run(&["changes", "diff", &id]).succeeded().stdout;
            assert!(diff.contains("-before\n+after\n"), "{diff}");
            world.run(&["changes", "rm", &id]).succeeded();
            assert_eq!(folders(world), Vec::<String>::new());
        }
    });
}

#[test]
fn changes_of_a_session_whose_keeper_was_killed_are_kept() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        for (options, signal) in [
            (&[][..], Signal::KILL),
            (&[][..], Signal::TERM),
            (&["--backend", "subprocess"][..], Signal::KILL),
        ] {
            world.write("source/file", "before\n");
            let id = create(world, &[&["--workspace-copy", "source", "--name", "work"], options].concat());
            exec(world, "work", "echo after > file").succeeded();
            kill_process(keeper_of(&world.path().join("state/runs").join(&id)), signal).unwrap();
            until(|| !list(world).is_empty());
            let told = world.run(&["session", "diff", "work", "--json"]).succeeded().json();
            assert_eq!(told["files"], json!([{ "path": "file", "change": "modified" }]));
            world.run(&["session", "commit", "work"]).succeeded();
            assert_eq!(world.read("source/file"), "after\n");
            // The kernel takes its time to end the sandbox of a killed keeper; the next command that looks for leftovers
            // cleans up.
            until(|| list(world).is_empty() && folders(world).is_empty());
        }
    });
}
