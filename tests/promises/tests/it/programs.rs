//! PG1: with an allowlist of programs, no other program can be started, by any process and in any way.
//!
//! Each attempt starts the same program, `basename`, which prints a mark. The control is the same attempt in a sandbox
//! without an allowlist. The allowlist has a shell and the programs that the attempt itself needs.

mod attempts;

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::end_session;
use attempts::{ATTEMPTS, LISTED, ProgramAttempt};
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Output of the program for the path that it gets.
const MARK: &str = "mark-of-a-program-that-is-not-listed";

/// The kind of sandbox; each is built differently.
#[derive(Debug, Clone, Copy)]
enum SandboxKind {
    Direct,
    Copy,
    /// The runner starts the program. The runner is on no allowlist and runs anyway.
    Job,
    Session,
}

#[test]
fn only_listed_programs_can_be_started() {
    let tally = Tally::new("programs");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        bring(&scene);
        for kind in [SandboxKind::Direct, SandboxKind::Copy, SandboxKind::Job, SandboxKind::Session] {
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

/// Puts a copy of the program under an allowed name, and a script that it interprets, into the workspace and the read-only
/// mount.
fn bring(scene: &PreparedHost<'_>) {
    let program = fs::read("/usr/bin/basename").unwrap();
    for folder in ["given/programs", "programs-lent"] {
        let copy = scene.world.write(&format!("{folder}/sh"), &program);
        let script = scene.world.write(&format!("{folder}/{MARK}"), "#!/usr/bin/basename\n");
        for file in [copy, script] {
            fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
        }
    }
}

fn judge(scene: &PreparedHost<'_>, kind: SandboxKind, attempt: &ProgramAttempt) -> Verdict {
    let programs = format!("sh,{}", attempt.takes);
    let script = format!("echo begun; {}", attempt.script);
    let control = run(scene, kind, None, &script);
    if !control.stdout.contains(MARK) {
        return Verdict::Invalid(format!("it fails without a list, too: {control:?}"));
    }
    let ran = run(scene, kind, Some(&programs), &script);
    // The shell's first output shows that the attempt was made.
    match (ran.stdout.contains("begun"), ran.stdout.contains(MARK)) {
        (_, true) => Verdict::Escaped(format!("{ran:?}")),
        (true, false) => Verdict::Held,
        (false, false) => Verdict::Invalid(format!("nothing was tried: {ran:?}")),
    }
}

/// Runs a script in a sandbox, with or without an allowlist of programs.
fn run(scene: &PreparedHost<'_>, kind: SandboxKind, programs: Option<&str>, script: &str) -> ProgramOutput {
    let script = script.replace("MARK", MARK);
    let (given, lent) = (scene.path("given/programs"), format!("{}:/lent", scene.path("programs-lent")));
    let workspace = match kind {
        SandboxKind::Direct => ["--workspace", &given],
        SandboxKind::Copy | SandboxKind::Job | SandboxKind::Session => ["--workspace-copy", &given],
    };
    let listed = programs.map(|programs| vec!["--programs", programs]).unwrap_or_default();
    let options = [&workspace, &["--ro", &lent][..], &listed].concat();
    let program = ["sh", "-c", &script];
    match kind {
        SandboxKind::Direct | SandboxKind::Copy => scene.make(&["exec"], &options, &program),
        SandboxKind::Job => {
            // The result of a failed step has no output, so the script must succeed.
            let document = job(&json!([shell(&format!("{script}\n:"))]));
            scene.world.write("job.json", document.to_string());
            let mut ran = scene.make(&["run", "--json"], &[&options[..], &["job.json"]].concat(), &[]);
            let stdout = ran.json()["steps"][0]["result"]["stdout"].as_str().map(str::to_owned);
            ran.stdout = stdout.unwrap_or_default();
            ran
        }
        SandboxKind::Session => {
            let session = scene.make(&["session", "create"], &options, &[]).succeeded().stdout;
            let ran = scene.world.run(&[&["session", "exec", session.trim(), "--"], &program[..]].concat());
            end_session(scene, session.trim());
            ran
        }
    }
}
