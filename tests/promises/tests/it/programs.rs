//! PG1: where a list names the programs that can be started, no other is, whoever asks and however.
//!
//! What is tried is always the same program, `basename`, which prints a mark; the control is the same attempt in a sandbox
//! without a list. What is listed are a shell and what the attempt itself takes.

mod attempts;

use crate::belljar::belljar;
use crate::scene::Scene;
use crate::tally::{Tally, Verdict};
use crate::way::end_session;
use attempts::{ATTEMPTS, Attempt, LISTED};
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{Ran, World};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// What the program prints, from a path that it is given.
const MARK: &str = "mark-of-a-program-that-is-not-listed";

/// How a sandbox is made; each builds it differently.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Direct,
    Copy,
    /// The runner starts it, which is on no list and runs all the same.
    Job,
    Session,
}

#[test]
fn no_program_is_started_that_is_not_on_the_list() {
    let tally = Tally::new("programs");
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        bring(&scene);
        for kind in [Kind::Direct, Kind::Copy, Kind::Job, Kind::Session] {
            let place = format!("{kind:?} {:?}", world.user());
            for attempt in ATTEMPTS {
                let verdict = judge(&scene, kind, attempt);
                tally.count("PG1", &format!("PG1 {}", attempt.what), &place, verdict);
            }
            for (what, script) in LISTED {
                let ran = run(&scene, kind, Some("sh,git,python3,env"), script);
                let verdict = match ran.stdout.trim() {
                    MARK => Verdict::Held,
                    _ => Verdict::Blocked(format!("{ran:?}")),
                };
                tally.count("PG1", &format!("PG1 listed: {what}"), &place, verdict);
            }
        }
    });
    tally.close();
}

/// A copy of the program under an allowed name, and a script that it interprets, in the workspace and in what is lent.
fn bring(scene: &Scene<'_>) {
    let program = fs::read("/usr/bin/basename").unwrap();
    for folder in ["given/programs", "programs-lent"] {
        let copy = scene.world.write(&format!("{folder}/sh"), &program);
        let script = scene.world.write(&format!("{folder}/{MARK}"), "#!/usr/bin/basename\n");
        for file in [copy, script] {
            fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
        }
    }
}

fn judge(scene: &Scene<'_>, kind: Kind, attempt: &Attempt) -> Verdict {
    let programs = format!("sh,{}", attempt.takes);
    let script = format!("echo begun; {}", attempt.script);
    let control = run(scene, kind, None, &script);
    if !control.stdout.contains(MARK) {
        return Verdict::Invalid(format!("it fails without a list, too: {control:?}"));
    }
    let ran = run(scene, kind, Some(&programs), &script);
    // That the shell began shows that something was tried.
    match (ran.stdout.contains("begun"), ran.stdout.contains(MARK)) {
        (_, true) => Verdict::Escaped(format!("{ran:?}")),
        (true, false) => Verdict::Held,
        (false, false) => Verdict::Invalid(format!("nothing was tried: {ran:?}")),
    }
}

/// Runs a script in a sandbox, with or without a list of programs.
fn run(scene: &Scene<'_>, kind: Kind, programs: Option<&str>, script: &str) -> Ran {
    let script = script.replace("MARK", MARK);
    let (given, lent) = (scene.path("given/programs"), format!("{}:/lent", scene.path("programs-lent")));
    let workspace = match kind {
        Kind::Direct => ["--workspace", &given],
        Kind::Copy | Kind::Job | Kind::Session => ["--workspace-copy", &given],
    };
    let listed = programs.map(|programs| vec!["--programs", programs]).unwrap_or_default();
    let options = [&workspace, &["--ro", &lent][..], &listed].concat();
    let program = ["sh", "-c", &script];
    match kind {
        Kind::Direct | Kind::Copy => scene.make(&["exec"], &options, &program),
        Kind::Job => {
            // What fails has no output in its result.
            let document = job(&json!([shell(&format!("{script}\n:"))]));
            scene.world.write("job.json", document.to_string());
            let mut ran = scene.make(&["run", "--json"], &[&options[..], &["job.json"]].concat(), &[]);
            let stdout = ran.json()["steps"][0]["result"]["stdout"].as_str().map(str::to_owned);
            ran.stdout = stdout.unwrap_or_default();
            ran
        }
        Kind::Session => {
            let session = scene.make(&["session", "create"], &options, &[]).succeeded().stdout;
            let ran = scene.world.run(&[&["session", "exec", session.trim(), "--"], &program[..]].concat());
            end_session(scene, session.trim());
            ran
        }
    }
}
