//! The exact posture of every process and thread: any property beyond those listed here is a defect.

pub(crate) mod init;
mod places;

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::{PROBE, StartMethod};
use belljar_testkit::world::World;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn every_sandbox_thread_has_exactly_the_documented_posture() {
    let tally = Tally::new("posture");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        for way in StartMethod::ALL {
            // Without this wall PID 1 is root in its namespace, and the runner refuses to do jobs as root: there is no
            // posture to compare.
            if *way == StartMethod::Job && is_left_out("inside_user") {
                continue;
            }
            judge(&scene, *way, compare, &tally);
        }
    });
    tally.close();
}

/// Returns true if sandboxes are to be made without this wall, as the test of removals requests.
fn is_left_out(wall: &str) -> bool {
    std::env::var("BELLJAR_REMOVED_WALLS").is_ok_and(|names| names.split(',').any(|name| name == wall))
}

/// Compares the posture in a sandbox with the required one.
pub(crate) fn judge(
    scene: &PreparedHost<'_>,
    way: StartMethod,
    compare: fn(&Value, StartMethod) -> ComparedProperties,
    tally: &Tally,
) {
    let told: Value = serde_json::from_str(&way.run(scene, &[PROBE, "posture"])).unwrap();
    let place = format!("{way:?} {:?}", scene.world.user());
    for (what, found, expected) in compare(&told, way) {
        let verdict = match found == expected {
            true => Verdict::Held,
            false => Verdict::Escaped(format!("{found}, not {expected}")),
        };
        tally.count("posture", &format!("posture {what}"), &place, verdict);
    }
}

/// The control: a process outside of a sandbox has another posture, and the probe reports it.
#[test]
fn posture_outside_differs_from_the_sandbox_posture() {
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        let probe = scene.path("lent/belljar-probe");
        let output = scene.leaking(probe.as_ref(), &["posture"]).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let counters = told["counters"].as_array().unwrap();
        let boot = "/proc/sys/kernel/random/boot_id";
        for counter in
            ["/proc/cgroups", "/proc/fs", "/proc/irq", "/proc/swaps", "/proc/sys/kernel/pty/nr", boot]
        {
            assert!(counters.contains(&json!(counter)), "{counter} is empty outside; {counters:?}");
        }
        let differs: BTreeSet<String> = compare(&told, StartMethod::Empty)
            .into_iter()
            .filter(|(_, found, expected)| found != expected)
            .map(|(what, ..)| what)
            .collect();
        for what in [
            "NoNewPrivs",
            "Seccomp",
            "Uid",
            "CapBnd",
            "descriptors",
            "devices",
            "namespace net",
            "domains_left",
            "mount at /tmp",
            "terminals are the host's",
            "limit Max processes",
        ] {
            assert!(
                differs.iter().any(|differs| differs.contains(what)),
                "{what} is the same outside; {differs:?}"
            );
        }
    });
}

pub(crate) type ComparedProperties = Vec<(String, Value, Value)>;

/// Returns the found and the required values: threads before and after there are more of them, then the process.
pub(crate) fn compare(told: &Value, way: StartMethod) -> ComparedProperties {
    let mut compared = Vec::new();
    for (which, count) in [("threads", 1), ("more_threads", 4)] {
        let threads = told[which].as_array().unwrap();
        compared.push((format!("{which}, how many"), json!(threads.len()), json!(count)));
        for thread in threads {
            compare_fields(&mut compared, which, thread, &fields_of_thread(way));
            // The probe's Rust runtime ignores SIGPIPE itself.
            compared.push((
                format!("{which}: SigIgn"),
                ignored_signals(thread, way),
                json!("0000000000001000"),
            ));
        }
    }
    compare_fields(&mut compared, "init", &told["init"], &fields_of_init());
    compare_fields(&mut compared, "process", told, &fields_of_process(way));
    for (name, expected) in namespaces() {
        let found = told["namespaces"][&name].as_str().unwrap_or_default();
        let is_hosts =
            fs::read_link(format!("/proc/self/ns/{name}")).is_ok_and(|own| own.as_os_str() == found);
        compared.push((format!("namespace {name} is the host's"), json!(is_hosts), json!(expected)));
    }
    for (name, expected) in limits() {
        compared.push((format!("limit {name}"), told["limits"][&name].clone(), json!(expected)));
    }
    compared.extend(places::compare(&told["mounts"], way));
    let is_hosts = fs::metadata("/dev/pts").is_ok_and(|own| told["terminals"] == json!(own.dev()));
    compared.push(("terminals are the host's".to_owned(), json!(is_hosts), json!(false)));
    compared.push(("environment".to_owned(), told["environment"].clone(), environment(way)));
    compared.push((
        "descriptors".to_owned(),
        descriptors(&told["descriptors"]),
        json!({ "0": "harmless", "1": "harmless", "2": "harmless" }),
    ));
    compared
}

/// Returns the open descriptors. A pipe to the host or `/dev/null` is harmless; anything else is shown as it is.
fn descriptors(open: &Value) -> Value {
    let mut descriptors = open.clone();
    for target in descriptors.as_object_mut().unwrap().values_mut() {
        if target.as_str().is_some_and(|target| target == "/dev/null" || target.starts_with("pipe:[")) {
            *target = json!("harmless");
        }
    }
    descriptors
}

/// Returns the ignored signals. A step ignores those that the C library reserves, because the runner started it through that
/// library.
fn ignored_signals(status: &Value, way: StartMethod) -> Value {
    const OF_THE_C_LIBRARY: u64 = (1 << 31) | (1 << 32);
    let ignored = u64::from_str_radix(status["SigIgn"].as_str().unwrap_or_default(), 16).unwrap_or(u64::MAX);
    json!(format!("{:016x}", if way == StartMethod::Job { ignored & !OF_THE_C_LIBRARY } else { ignored }))
}

fn compare_fields(compared: &mut ComparedProperties, of: &str, found: &Value, expected: &[(&str, Value)]) {
    for (name, expected) in expected {
        compared.push((format!("{of}: {name}"), found[*name].clone(), expected.clone()));
    }
}

/// Returns the required status fields of every thread.
fn fields_of_thread(way: StartMethod) -> Vec<(&'static str, Value)> {
    let nothing = json!("0".repeat(16));
    // A step also has the runner's filters: for calls that name the runner, and for openat2.
    let filters = if way == StartMethod::Job { "4" } else { "2" };
    vec![
        ("CapInh", nothing.clone()),
        ("CapPrm", nothing.clone()),
        ("CapEff", nothing.clone()),
        ("CapBnd", nothing.clone()),
        ("CapAmb", nothing.clone()),
        ("NoNewPrivs", json!("1")),
        ("Seccomp", json!("2")),
        ("Seccomp_filters", json!(filters)),
        ("Uid", json!("1000 1000 1000 1000")),
        ("Gid", json!("1000 1000 1000 1000")),
        ("Groups", json!("")),
        ("Umask", json!("0022")),
        ("TracerPid", json!("0")),
        ("SigBlk", nothing.clone()),
        ("ShdPnd", nothing.clone()),
        ("CoreDumping", json!("0")),
    ]
}

fn fields_of_init() -> Vec<(&'static str, Value)> {
    let nothing = json!("0".repeat(16));
    vec![
        ("Name", json!("belljar-init")),
        ("Pid", json!("1")),
        ("PPid", json!("0")),
        ("CapPrm", nothing.clone()),
        ("CapEff", nothing.clone()),
        ("CapInh", nothing.clone()),
        ("CapBnd", nothing.clone()),
        ("CapAmb", nothing),
        ("NoNewPrivs", json!("1")),
        ("Seccomp", json!("2")),
        ("Uid", json!("1000 1000 1000 1000")),
        ("Gid", json!("1000 1000 1000 1000")),
        ("Threads", json!("1")),
    ]
}

fn fields_of_process(way: StartMethod) -> Vec<(&'static str, Value)> {
    const DEVICES: [&str; 13] = [
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
        "zero",
    ];
    let processes = match way {
        StartMethod::Job => json!(["belljar-init", "cynode-sba", "belljar-probe"]),
        _ => json!(["belljar-init", "belljar-probe"]),
    };
    vec![
        ("init_dumpable", json!(false)),
        ("processes", processes),
        ("securebits", json!(0)),
        ("dumpable", json!(1)),
        ("personality", json!(0)),
        ("scheduler", json!(0)),
        // The kernel stores the value as 20 minus niceness; the raw call returns that.
        ("nice", json!(20)),
        ("directory", json!("/workspace")),
        ("devices", json!(DEVICES)),
        ("keys", json!("")),
        ("key_users", json!("")),
        ("counters", json!([])),
        ("host_name", json!("belljar")),
        ("has_session", json!(true)),
        // A previous root is mounted over the new one for a while, and `..` of the root leads to the topmost mount.
        ("root_is_on_top", json!(true)),
        // The list is hidden if a bind mount has a host path that must stay private.
        (
            "mounts_are_listed",
            json!(!matches!(way, StartMethod::Direct | StartMethod::Job | StartMethod::Session)),
        ),
        ("mounts_follow_others", json!(false)),
        ("domains_left", json!(domains_left(way))),
    ]
}

/// Returns the number of Landlock domains that can still be entered. The kernel nests at most sixteen.
fn domains_left(way: StartMethod) -> i64 {
    match (belljar_confine::landlock_abi(), way) {
        (0, _) => 0,
        // A step is also in a domain of its runner.
        (_, StartMethod::Job) => 14,
        _ => 15,
    }
}

/// Returns for each namespace whether it is the host's.
fn namespaces() -> BTreeMap<String, bool> {
    let others =
        ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts"].map(|name| (name, false));
    // Clocks are those of the host.
    let same = ["time", "time_for_children"].map(|name| (name, true));
    others.into_iter().chain(same).map(|(name, is_hosts)| (name.to_owned(), is_hosts)).collect()
}

/// Returns the limits that a sandbox sets, as the kernel shows them; where the host's own are lower, those.
fn limits() -> BTreeMap<String, String> {
    let least = |resource: Resource, most: u64| getrlimit(resource).maximum.map_or(most, |own| own.min(most));
    [
        ("Max core file size", least(Resource::Core, 1)),
        ("Max open files", least(Resource::Nofile, 65_536)),
        ("Max processes", least(Resource::Nproc, 1_024)),
        ("Max locked memory", least(Resource::Memlock, 8 << 20)),
        ("Max pending signals", least(Resource::Sigpending, 4_096)),
        ("Max msgqueue size", least(Resource::Msgqueue, 256 << 10)),
        ("Max realtime priority", 0),
        ("Max nice priority", 0),
    ]
    .map(|(name, limit)| (name.to_owned(), format!("{limit} {limit}")))
    .into()
}

fn environment(way: StartMethod) -> Value {
    let mut environment = json!({
        "HOME": "/home/agent",
        "LANG": "C.UTF-8",
        "LOGNAME": "agent",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SHELL": "/bin/sh",
        "TMPDIR": "/tmp",
        "USER": "agent",
    });
    if way == StartMethod::Job {
        let job = belljar_testkit::job::job(&json!([]));
        environment["CYNODE_JOB_ID"] = job["job_id"].clone();
        environment["CYNODE_TASK_ID"] = job["task_id"].clone();
        environment["CYNODE_WORKSPACE_DIR"] = json!("/workspace");
        environment["CYNODE_ARTIFACTS_DIR"] = json!("/job/artifacts");
        environment["PWD"] = json!("/workspace");
    }
    environment
}
