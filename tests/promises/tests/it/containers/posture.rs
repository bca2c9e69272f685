//! The posture of programs in containers, and of their PID 1: what is written down for native sandboxes, but for what an
//! engine does otherwise.

use crate::holding::Holding;
use crate::posture::{Compared, compare, init};
use crate::scene::Scene;
use crate::tally::Tally;
use crate::way::Way;
use belljar_promises::attempt::Attempt;
use serde_json::{Value, json};

/// What is found in every container of a scene is what must be.
pub(super) fn judge(scene: &Scene<'_>, tally: &Tally) {
    for way in scene.ways {
        crate::posture::judge(scene, *way, compare_with_engines, tally);
    }
    let nothing = Attempt { case: "nothing".to_owned(), steps: Vec::new() };
    let _held = Holding::inside(scene, Way::Copy, &nothing);
    let mut compared = init::compare(scene, pid_1(scene));
    for (what, found, expected) in &mut compared {
        if is_engines_of_init(what, found) {
            *expected = found.clone();
        }
    }
    init::judge(compared, &format!("Copy {:?}", scene.world.user()), tally);
}

/// The process of the host that is PID 1 of the scene's container.
fn pid_1(scene: &Scene<'_>) -> u32 {
    let engine = scene.engine.unwrap();
    let ids = engine.command(&["ps", "--quiet"]).unwrap();
    let format = "--format={{.State.Pid}} {{index .Config.Labels \"belljar.owner\"}}";
    let ids: Vec<&str> = ids.lines().collect();
    let told = engine.command(&[&["inspect", format], &ids[..]].concat()).unwrap();
    let state = scene.path("state");
    let mut found = told.lines().filter_map(|line| line.split_once(' '));
    found.find(|(_, owner)| owner.starts_with(&state)).unwrap().0.parse().unwrap()
}

fn compare_with_engines(told: &Value, way: Way) -> Compared {
    let mut compared = compare(told, way);
    for (what, found, expected) in &mut compared {
        if is_engines(what, way, found) {
            *expected = found.clone();
        }
    }
    compared
}

/// Whether that is what an engine makes of it, and no less than a container promises.
fn is_engines(what: &str, way: Way, found: &Value) -> bool {
    let has = |attributes: &[&str]| {
        let found = found["attributes"].as_array().unwrap();
        attributes.iter().all(|attribute| found.contains(&json!(attribute)))
    };
    let holds = |bytes: u64| found["bytes"] == bytes;
    // What may be held in memory is divided, and `/tmp` has half of it.
    let eighth: u64 = 1 << 27;
    let share = if way == Way::Empty { eighth } else { 2 * eighth };
    match what {
        // The engine's own filter, ours, that which spares the relay, and the guard.
        "threads: Seccomp_filters" | "more_threads: Seccomp_filters" => *found == "4",
        // One's own, named once more.
        "threads: Groups" | "more_threads: Groups" => *found == "1000",
        // No user namespace, and so the limit of a user's processes is the host's; control groups count them.
        "namespace user is the host's" | "limit Max processes" => true,
        "process: devices" => {
            let mut devices = found.as_array().unwrap().clone();
            devices.retain(|device| device != "mqueue");
            devices.len() == 13 && devices.contains(&json!("null")) && devices.contains(&json!("urandom"))
        }
        // The relay was started by the path of the program that PID 1 is.
        "process: processes" => *found == json!(["belljar-init", "exe", "belljar-probe"]),
        // Java before version 25 finds its container's limits by it.
        "process: counters" => *found == json!(["/proc/cgroups"]),
        // The root of an engine's container is a follower of the host's mount of it.
        "process: mounts_follow_others" | "process: mounts_are_listed" => *found == true,
        "mount at /" | "mount at /etc" | "mount at /usr" | "mount at /lent" => has(&["read-only"]),
        "mount at /proc" => has(&["nosuid", "nodev", "noexec"]),
        "mount at /dev" => has(&["nosuid"]),
        "mount at /dev/shm" => has(&["nosuid", "nodev"]) && holds(share),
        "mount at /home/agent" => has(&["nosuid", "nodev"]) && holds(share),
        "mount at /tmp" => has(&["nosuid", "nodev"]) && holds(4 * eighth),
        "mount at /workspace" if way == Way::Empty => has(&["nosuid", "nodev"]) && holds(2 * eighth),
        // An engine binds without options; no program gains rights by its bits, and no device is there to be opened.
        "mount at /workspace" => found["kind"] == "the host's",
        _ => false,
    }
}

/// The same for PID 1.
fn is_engines_of_init(what: &str, found: &Value) -> bool {
    let is_of_own_group =
        |path: &Value| path.as_str().is_some_and(|path| path.starts_with("/sys/fs/cgroup/"));
    match what {
        // Its orders name places inside, and nothing of the host's.
        "arguments" => {
            found.as_str().is_some_and(|line| line.starts_with("/run/belljar/belljar-inside\0init\0"))
        }
        // The image's and the engine's, which its programs don't get.
        "environment" => true,
        // Where its own control group tells that memory is used up.
        "holds" => found.as_array().is_some_and(|held| held.iter().all(is_of_own_group)),
        // The first that it has started is the relay.
        "has started a program with a session" => true,
        _ => false,
    }
}
