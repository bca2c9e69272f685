//! The posture of every process and thread, exactly: what is there beyond what is written here is a defect.

use crate::belljar::belljar;
use crate::holding::Holding;
use crate::scene::Scene;
use crate::tally::{Tally, Verdict};
use crate::way::{PROBE, Way};
use belljar_promises::attempt::Attempt;
use belljar_testkit::world::World;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn every_thread_has_exactly_the_posture_that_is_written_down() {
    let tally = Tally::new("posture");
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        for way in Way::ALL {
            let told: Value = serde_json::from_str(&way.run(&scene, &[PROBE, "posture"])).unwrap();
            let place = format!("{way:?} {:?}", world.user());
            for (what, found, expected) in compare(&told, *way) {
                let verdict = match found == expected {
                    true => Verdict::Held,
                    false => Verdict::Escaped(format!("{found}, not {expected}")),
                };
                tally.count("posture", &format!("posture {what}"), &place, verdict);
            }
        }
    });
    tally.close();
}

/// The control: whoever is not in a sandbox has another posture, and the probe tells so.
#[test]
fn outside_the_posture_is_another_one() {
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        let probe = scene.path("lent/belljar-probe");
        let output = scene.leaking(probe.as_ref(), &["posture"]).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let differs: BTreeSet<String> = compare(&told, Way::Empty)
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
            "limit Max processes",
        ] {
            assert!(
                differs.iter().any(|differs| differs.contains(what)),
                "{what} is the same outside; {differs:?}"
            );
        }
    });
}

/// PID 1, as the host sees it: nothing of the host's is open in it.
#[test]
fn pid_1_holds_nothing_of_the_host() {
    if !rustix::process::geteuid().is_root() {
        belljar_testkit::skip::skip(
            "pid_1_holds_nothing_of_the_host",
            "only root may look at its descriptors",
        );
        return;
    }
    World::as_everyone(belljar(), |world| {
        let scene = Scene::lay(world);
        for way in Way::EXEC {
            let nothing = Attempt { case: "nothing".to_owned(), steps: Vec::new() };
            let held = Holding::inside(&scene, *way, &nothing);
            let init = child_of(held.pid()).expect("PID 1 is belljar's child");
            let status = fs::read_to_string(format!("/proc/{init}/status")).unwrap();
            let value = |key: &str| field(&status, key);
            assert_eq!(value("NSpid").split_whitespace().last(), Some("1"), "{status}");
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(value(set), "0".repeat(16), "{set}");
            }
            assert_eq!((value("NoNewPrivs").as_str(), value("Seccomp").as_str()), ("1", "2"));
            // What it needed to build the sandbox it closes as the program begins.
            let deadline = Instant::now() + Duration::from_secs(10);
            while !held_by(init).is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(held_by(init), [""; 0], "{way:?}");
            let environment = fs::read(format!("/proc/{init}/environ")).unwrap_or_default();
            assert!(environment.iter().all(|byte| *byte == 0), "{way:?}: {environment:?}");
        }
    });
}

/// What of the host a process has open: anything but sockets, pipes and what has no name.
fn held_by(pid: u32) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok);
    let targets =
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).map(|target| target.display().to_string());
    let is_own = |target: &String| {
        ["socket:[", "anon_inode:", "mnt:[", "pipe:["].iter().any(|own| target.starts_with(own))
    };
    targets.filter(|target| !is_own(target)).collect()
}

/// The process that a process has started, if it is one: through the shell that has become it, belljar's PID 1.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn field(status: &str, key: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

type Compared = Vec<(String, Value, Value)>;

/// What was found beside what must be: threads before and after there are more of them, then the process.
fn compare(told: &Value, way: Way) -> Compared {
    let mut compared = Vec::new();
    for (which, count) in [("threads", 1), ("more_threads", 4)] {
        let threads = told[which].as_array().unwrap();
        compared.push((format!("{which}, how many"), json!(threads.len()), json!(count)));
        for thread in threads {
            compare_fields(&mut compared, which, thread, &fields_of_thread(way));
            // The Rust runtime of the probe ignores SIGPIPE itself.
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
    compared.push(("environment".to_owned(), told["environment"].clone(), environment(way)));
    compared.push((
        "descriptors".to_owned(),
        descriptors(&told["descriptors"]),
        json!({ "0": "harmless", "1": "harmless", "2": "harmless" }),
    ));
    compared
}

/// What is open: a pipe to the host or nothing is harmless, anything else is told as it is.
fn descriptors(open: &Value) -> Value {
    let mut descriptors = open.clone();
    for target in descriptors.as_object_mut().unwrap().values_mut() {
        if target.as_str().is_some_and(|target| target == "/dev/null" || target.starts_with("pipe:[")) {
            *target = json!("harmless");
        }
    }
    descriptors
}

/// The signals that are ignored. Those that the C library keeps for itself it ignores in a step, which the runner has
/// started through it.
fn ignored_signals(status: &Value, way: Way) -> Value {
    const OF_THE_C_LIBRARY: u64 = (1 << 31) | (1 << 32);
    let ignored = u64::from_str_radix(status["SigIgn"].as_str().unwrap_or_default(), 16).unwrap_or(u64::MAX);
    json!(format!("{:016x}", if way == Way::Job { ignored & !OF_THE_C_LIBRARY } else { ignored }))
}

fn compare_fields(compared: &mut Compared, of: &str, found: &Value, expected: &[(&str, Value)]) {
    for (name, expected) in expected {
        compared.push((format!("{of}: {name}"), found[*name].clone(), expected.clone()));
    }
}

/// What stands in the status of every thread.
fn fields_of_thread(way: Way) -> Vec<(&'static str, Value)> {
    let nothing = json!("0".repeat(16));
    // A step is behind the runner's fence, too: its calls that name the runner, and openat2.
    let filters = if way == Way::Job { "4" } else { "2" };
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

fn fields_of_process(way: Way) -> Vec<(&'static str, Value)> {
    const DEVICES: [&str; 13] = [
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
        "zero",
    ];
    let processes = match way {
        Way::Job => json!(["belljar-init", "cynode-sba", "belljar-probe"]),
        _ => json!(["belljar-init", "belljar-probe"]),
    };
    vec![
        ("init_dumpable", json!(false)),
        ("processes", processes),
        ("securebits", json!(0)),
        ("dumpable", json!(1)),
        ("personality", json!(0)),
        ("scheduler", json!(0)),
        // The kernel counts from 40 down.
        ("nice", json!(20)),
        ("directory", json!("/workspace")),
        ("devices", json!(DEVICES)),
        ("keys", json!("")),
    ]
}

/// Whether each namespace is the host's.
fn namespaces() -> BTreeMap<String, bool> {
    let others =
        ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts"].map(|name| (name, false));
    // Clocks are those of the host.
    let same = ["time", "time_for_children"].map(|name| (name, true));
    others.into_iter().chain(same).map(|(name, is_hosts)| (name.to_owned(), is_hosts)).collect()
}

/// The limits that a sandbox sets, as the kernel shows them; where the host's own are lower, those.
fn limits() -> BTreeMap<String, String> {
    let least = |resource: Resource, most: u64| getrlimit(resource).maximum.map_or(most, |own| own.min(most));
    [
        ("Max core file size", least(Resource::Core, 1)),
        ("Max open files", least(Resource::Nofile, 65_536)),
        ("Max processes", least(Resource::Nproc, 1_024)),
        ("Max locked memory", least(Resource::Memlock, 8 << 20)),
        ("Max realtime priority", 0),
        ("Max nice priority", 0),
    ]
    .map(|(name, limit)| (name.to_owned(), format!("{limit} {limit}")))
    .into()
}

fn environment(way: Way) -> Value {
    let mut environment = json!({
        "HOME": "/home/agent",
        "LANG": "C.UTF-8",
        "LOGNAME": "agent",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SHELL": "/bin/sh",
        "TMPDIR": "/tmp",
        "USER": "agent",
    });
    if way == Way::Job {
        let job = belljar_testkit::job::job(&json!([]));
        environment["CYNODE_JOB_ID"] = job["job_id"].clone();
        environment["CYNODE_TASK_ID"] = job["task_id"].clone();
        environment["CYNODE_WORKSPACE_DIR"] = json!("/workspace");
        environment["CYNODE_ARTIFACTS_DIR"] = json!("/job/artifacts");
        environment["PWD"] = json!("/workspace");
    }
    environment
}
