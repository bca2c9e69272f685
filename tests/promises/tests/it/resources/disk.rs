//! RS3: disk space, taken in ways that a quota easily misses. A sandbox that exceeds its quota is killed as a whole; file
//! systems in memory refuse the write.

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_testkit::world::{ProgramOutput, User, World};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SMALL: &str = "4m";
const LARGE: &str = "1g";
const TAKEN: &str = "12";

/// The ways to fill a disk, each with whether it differs for an ordinary user.
const KINDS: [(&str, bool); 11] = [
    ("plain", true),
    ("deleted", true),
    ("hidden", true),
    ("mapped", false),
    ("reserved", true),
    ("by-a-thread", false),
    ("in-flight", false),
    ("in-flight-by-others", true),
    ("holes", false),
    ("tiny", false),
    ("deep", false),
];

#[test]
fn program_exceeding_the_disk_limit_ends_the_sandbox() {
    let tally = Tally::new("disk");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        let place = format!("{:?}", world.user());
        let is_own = world.user() == User::Own;
        for (kind, _) in KINDS.into_iter().filter(|(_, differs)| is_own || *differs) {
            let before = runs(&scene);
            let control = on_disk(&scene, kind, LARGE);
            let ran = on_disk(&scene, kind, SMALL);
            let is_ended = ran.code == 137 && ran.stderr.contains("exceeded its disk quota");
            let verdict = match (control.stdout.as_str(), is_ended && !ran.stdout.contains("left alone")) {
                ("filled\nleft alone\n", true) => Verdict::Held,
                ("filled\nleft alone\n", false) => {
                    Verdict::Escaped(format!("{:?}", (ran.code, ran.stdout, ran.stderr)))
                }
                _ => Verdict::Invalid(format!(
                    "it fails with {LARGE}, too: {:?} {:?}",
                    control.stdout, control.stderr
                )),
            };
            tally.count("RS3", &format!("RS3 {kind} in a copy"), &place, verdict);
            tally.count("RS3", &format!("RS3 {kind}, what is left"), &place, judge_rest(&scene, &before));
        }
        judge_memory(&scene, &tally);
        let verdict = judge_reservation(&scene, "requested", "Inappropriate ioctl");
        tally.count("RS3", "RS3 requested in one call", &place, verdict);
    });
    tally.close();
}

/// Fills the file systems in memory.
pub(crate) fn judge_memory(scene: &PreparedHost<'_>, tally: &Tally) {
    // Each probe stays for a while after it has filled a folder, so all of them run at the same time.
    let begin = |folder| (folder, in_memory(scene, folder, LARGE).stdout(Stdio::piped()).spawn().unwrap());
    for (folder, control) in ["/tmp", "/home/agent", "/dev/shm"].map(begin) {
        let ran = ProgramOutput::from(in_memory(scene, folder, SMALL).output().unwrap());
        let control = ProgramOutput::from(control.wait_with_output().unwrap());
        let verdict = match (control.code, ran.code, ran.stdout.contains("No space left")) {
            (0, 1, true) => Verdict::Held,
            (0, ..) => Verdict::Escaped(format!("{ran:?}")),
            _ => Verdict::Invalid(format!("it fails with {LARGE}, too: {control:?}")),
        };
        tally.count("RS3", &format!("RS3 {folder}"), &format!("{:?}", scene.world.user()), verdict);
    }
}

/// Judges a single call that takes the whole disk, and that ends before the quota is checked.
fn judge_reservation(scene: &PreparedHost<'_>, kind: &str, refusal: &str) -> Verdict {
    let outside = tempfile::tempdir().unwrap();
    let probe = scene.path("lent/belljar-probe");
    let control = Command::new(probe).args(["fill", kind]).arg(outside.path()).arg("1").output().unwrap();
    let ran = on_disk(scene, kind, LARGE);
    match (control.status.success(), ran.code, ran.stdout.contains(refusal)) {
        (true, 1, true) => Verdict::Held,
        (true, ..) => Verdict::Escaped(format!("{ran:?}")),
        (false, ..) => Verdict::Invalid(format!("it fails outside, too: {control:?}")),
    }
}

fn on_disk(scene: &PreparedHost<'_>, kind: &str, disk: &str) -> ProgramOutput {
    let copy = scene.path("given/copy");
    let options = ["--workspace-copy", &copy, "--disk", disk];
    ProgramOutput::from(command(scene, &options, &["fill", kind, "/workspace", TAKEN]).output().unwrap())
}

fn in_memory(scene: &PreparedHost<'_>, folder: &str, scratch: &str) -> Command {
    command(scene, &["--scratch", scratch], &["fill", "plain", folder, TAKEN])
}

fn command(scene: &PreparedHost<'_>, options: &[&str], arguments: &[&str]) -> Command {
    let lent = format!("{}:/lent", scene.path("lent"));
    scene.making(&["exec"], &[&["--ro", &lent], options].concat(), &[&[PROBE], arguments].concat())
}

/// Checks that no file of the run stays, however the disk was filled.
fn judge_rest(scene: &PreparedHost<'_>, before: &[PathBuf]) -> Verdict {
    match runs(scene) {
        after if after == before => Verdict::Held,
        after => Verdict::Escaped(format!("{after:?}")),
    }
}

fn runs(scene: &PreparedHost<'_>) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(scene.world.path().join("state/runs"));
    runs.into_iter().flatten().flatten().map(|run| run.path()).collect()
}
