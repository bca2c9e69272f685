//! RS2: memory of every kind. Whoever takes more than there is for the sandbox ends it as a whole, and belljar says so.

use crate::belljar::belljar;
use crate::scene::Scene;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_confine::group::Hierarchies;
use belljar_testkit::world::{Ran, World};

/// What a sandbox is given, and what is taken.
const SMALL: &str = "96m";
const LARGE: &str = "1g";
const TAKEN: &str = "240";

/// Each kind, and whether it takes a control group to be counted. Where there is none, PID 1 counts what belongs to its
/// processes, the tables of their pages among it, and what lies in their files in memory.
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
fn whoever_takes_too_much_memory_ends_the_sandbox() {
    let tally = Tally::new("memory");
    World::as_everyone(belljar(), |world| judge_all(&Scene::lay(world), &tally));
    tally.close();
}

/// Takes too much of every kind in sandboxes of a scene.
pub(crate) fn judge_all(scene: &Scene<'_>, tally: &Tally) {
    let place = format!("{:?}", scene.world.user());
    let has_group = has_control_group(scene);
    // An engine sets no limit on what TCP holds, and the groups of version 1 charge it to nothing.
    let charges_tcp = scene.engine.is_none() || Hierarchies::find().is_ok_and(|groups| groups.version() == 2);
    for (kind, needs_group) in KINDS {
        let verdict = match kind {
            _ if needs_group && !has_group => Verdict::NotShown("control groups".to_owned()),
            "tcp" if !charges_tcp => Verdict::NotShown("control groups of version 2".to_owned()),
            _ => judge(scene, kind),
        };
        tally.count("RS2", &format!("RS2 {kind}"), &place, verdict);
    }
    // What the kernel merely remembers is no reason: twice as much as there is goes through.
    let cached = take(scene, "cache", SMALL);
    let verdict = match cached.stdout.trim() {
        "took 240" if cached.code == 0 => Verdict::Held,
        _ => Verdict::Blocked(format!("{cached:?}")),
    };
    tally.count("RS2", "RS2 what is only remembered", &place, verdict);
}

fn judge(scene: &Scene<'_>, kind: &str) -> Verdict {
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

fn take(scene: &Scene<'_>, kind: &str, memory: &str) -> Ran {
    let lent = format!("{}:/lent", scene.path("lent"));
    let copy = scene.path("given/copy");
    let options = ["--ro", &lent, "--workspace-copy", &copy, "--memory", memory, "--scratch", "1g"];
    scene.make(&["exec"], &options, &[PROBE, "consume", kind, TAKEN])
}

pub(super) fn has_control_group(scene: &Scene<'_>) -> bool {
    if scene.engine.is_some() {
        // Engines do without no group.
        return true;
    }
    let ran = scene.world.run(&["exec", "--isolation", "--", "true"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let layers = report["layers"].as_array().unwrap();
    let memory = layers.iter().find(|layer| layer["name"] == "memory_limit").unwrap();
    memory["detail"].as_str().unwrap().contains("by control groups")
}
