//! The posture of programs in containers, and of their PID 1: that of native sandboxes, except for the listed
//! differences of engines.

use crate::holding::HoldingProbe;
use crate::posture::{ComparedProperties, compare, init};
use crate::scene::PreparedHost;
use crate::tally::Tally;
use crate::way::StartMethod;
use belljar_promises::attempt::Attempt;
use serde_json::{Value, json};

/// Compares the posture in every container of a scene with the required one.
pub(super) fn judge(scene: &PreparedHost<'_>, tally: &Tally) {
    for way in scene.ways {
        crate::posture::judge(scene, *way, compare_with_engines, tally);
    }
    let nothing = Attempt { case: "nothing".to_owned(), steps: Vec::new() };
    let _held = HoldingProbe::inside(scene, StartMethod::Copy, &nothing);
    let mut compared = init::compare(scene, pid_1(scene));
    for (what, found, expected) in &mut compared {
        if is_engines_of_init(what, found) {
            *expected = found.clone();
        }
    }
    init::judge(compared, &format!("Copy {:?}", scene.world.user()), tally);
}

/// Returns the host's process id of the PID 1 of the scene's container.
fn pid_1(scene: &PreparedHost<'_>) -> u32 {
    let engine = scene.engine.unwrap();
    let ids = engine.command(&["ps", "--quiet"]).unwrap();
    let format = "--format={{.State.Pid}} {{index .Config.Labels \"belljar.owner\"}}";
    let ids: Vec<&str> = ids.lines().collect();
    let told = engine.command(&[&["inspect", format], &ids[..]].concat()).unwrap();
    let state = scene.path("state");
    let mut found = told.lines().filter_map(|line| line.split_once(' '));
    found.find(|(_, owner)| owner.starts_with(&state)).unwrap().0.parse().unwrap()
}

fn compare_with_engines(told: &Value, way: StartMethod) -> ComparedProperties {
    let mut compared = compare(told, way);
    for (what, found, expected) in &mut compared {
        if is_engines(what, way, found) {
            *expected = found.clone();
        }
    }
    compared
}

/// Returns true if the difference is the engine's, and no less than a container promises.
fn is_engines(what: &str, way: StartMethod, found: &Value) -> bool {
    let has = |attributes: &[&str]| {
        let found = found["attributes"].as_array().unwrap();
        attributes.iter().all(|attribute| found.contains(&json!(attribute)))
    };
    let holds = |bytes: u64| found["bytes"] == bytes;
    // The memory for files is divided, and `/tmp` has half of it.
    let eighth: u64 = 1 << 27;
    let share = if way == StartMethod::Empty { eighth } else { 2 * eighth };
    match what {
        // The engine's own filter, ours, the filter that exempts the relay, and the guard.
        "threads: Seccomp_filters" | "more_threads: Seccomp_filters" => *found == "4",
        // The process's own group, listed once more.
        "threads: Groups" | "more_threads: Groups" => *found == "1000",
        // There is no user namespace, so the process limit is that of the host's user; control groups count the
        // processes.
        "namespace user is the host's" | "limit Max processes" => true,
        "process: devices" => {
            let mut devices = found.as_array().unwrap().clone();
            devices.retain(|device| device != "mqueue");
            devices.len() == 13 && devices.contains(&json!("null")) && devices.contains(&json!("urandom"))
        }
        // The relay was started by the path of PID 1's program.
        "process: processes" => *found == json!(["belljar-init", "exe", "belljar-probe"]),
        // Java before version 25 finds its container's limits by this file.
        "process: counters" => *found == json!(["/proc/cgroups"]),
        // The root mount of an engine's container receives the host's mount events.
        "process: mounts_follow_others" | "process: mounts_are_listed" => *found == true,
        "mount at /" | "mount at /etc" | "mount at /usr" | "mount at /lent" => has(&["read-only"]),
        "mount at /proc" => has(&["nosuid", "nodev", "noexec"]),
        "mount at /dev" => has(&["nosuid"]),
        "mount at /dev/shm" => has(&["nosuid", "nodev"]) && holds(share),
        "mount at /home/agent" => has(&["nosuid", "nodev"]) && holds(share),
        "mount at /tmp" => has(&["nosuid", "nodev"]) && holds(4 * eighth),
        "mount at /workspace" if way == StartMethod::Empty => has(&["nosuid", "nodev"]) && holds(2 * eighth),
        // An engine makes bind mounts without options; but set-id bits give no rights, and no device can be opened.
        "mount at /workspace" => found["kind"] == "the host's",
        _ => false,
    }
}

/// Like [`is_engines`], for PID 1.
fn is_engines_of_init(what: &str, found: &Value) -> bool {
    let is_of_own_group =
        |path: &Value| path.as_str().is_some_and(|path| path.starts_with("/sys/fs/cgroup/"));
    match what {
        // Its arguments name paths inside, and none of the host.
        "arguments" => {
            found.as_str().is_some_and(|line| line.starts_with("/run/belljar/belljar-inside\0init\0"))
        }
        // The environment of the image and the engine, which programs in the container don't get.
        "environment" => true,
        // Files of its own control group that report used memory.
        "holds" => found.as_array().is_some_and(|held| held.iter().all(is_of_own_group)),
        // The first process that it has started is the relay.
        "has started a program with a session" => true,
        _ => false,
    }
}
