//! RS2: memory of every kind. A sandbox that exceeds its limit is killed as a whole, and belljar reports the limit.

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_confine::group::CgroupHierarchies;
use belljar_testkit::world::{ProgramOutput, World};

/// The small and the large memory limit, and the memory that is taken, in MiB.
const SMALL: &str = "96m";
const LARGE: &str = "1g";
const TAKEN: &str = "240";

/// The kinds of memory, each with whether counting it requires a control group. Without one, PID 1 counts the memory of its
/// processes with their page tables, and files in memory.
const KINDS: [(&str, bool); 8] = [
    ("anonymous", false),
    ("children", false),
    ("files", false),
    ("shared", false),
    ("page-tables", false),
    ("unnamed", true),
    ("sockets", true),
    ("tcp", true),
];

#[test]
fn program_exceeding_the_memory_limit_ends_the_sandbox() {
    let tally = Tally::new("memory");
    World::as_everyone(belljar(), |world| judge_all(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Takes too much memory of every kind in sandboxes of a scene.
pub(crate) fn judge_all(scene: &PreparedHost<'_>, tally: &Tally) {
    let place = format!("{:?}", scene.world.user());
    let has_group = has_control_group(scene);
    // An engine sets no limit for TCP memory, and control groups of version 1 don't charge it to the memory limit.
    let charges_tcp =
        scene.engine.is_none() || CgroupHierarchies::find().is_ok_and(|groups| groups.version() == 2);
    for (kind, needs_group) in KINDS {
        let verdict = match kind {
            _ if needs_group && !has_group => Verdict::NotShown("control groups".to_owned()),
            "tcp" if !charges_tcp => Verdict::NotShown("control groups of version 2".to_owned()),
            _ => judge(scene, kind),
        };
        tally.count("RS2", &format!("RS2 {kind}"), &place, verdict);
    }
    // The page cache is no reason to kill: twice the limit succeeds.
    let cached = take(scene, "cache", SMALL);
    let verdict = match cached.stdout.trim() {
        "took 240" if cached.code == 0 => Verdict::Held,
        _ => Verdict::Blocked(format!("{cached:?}")),
    };
    tally.count("RS2", "RS2 what is only remembered", &place, verdict);
}

fn judge(scene: &PreparedHost<'_>, kind: &str) -> Verdict {
    let control = take(scene, kind, LARGE);
    if control.code != 0 || control.stdout.trim() != format!("took {TAKEN}") {
        return Verdict::Invalid(format!("it fails with {LARGE}, too: {control:?}"));
    }
    let ran = take(scene, kind, SMALL);
    let is_said = ran.stderr.contains("its memory was used up");
    match (ran.code, is_said, ran.stdout.contains("took")) {
        (137, true, false) => Verdict::Held,
        _ => Verdict::Escaped(format!("{ran:?}")),
    }
}

fn take(scene: &PreparedHost<'_>, kind: &str, memory: &str) -> ProgramOutput {
    let lent = format!("{}:/lent", scene.path("lent"));
    let copy = scene.path("given/copy");
    let options = ["--ro", &lent, "--workspace-copy", &copy, "--memory", memory, "--scratch", "1g"];
    scene.make(&["exec"], &options, &[PROBE, "consume", kind, TAKEN])
}

pub(super) fn has_control_group(scene: &PreparedHost<'_>) -> bool {
    if scene.engine.is_some() {
        // Engines always use a control group.
        return true;
    }
    let ran = scene.world.run(&["exec", "--isolation", "--", "true"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let layers = report["layers"].as_array().unwrap();
    let memory = layers.iter().find(|layer| layer["name"] == "memory_limit").unwrap();
    memory["detail"].as_str().unwrap().contains("by control groups")
}
