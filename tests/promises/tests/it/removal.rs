//! A missing wall is always detected: with any one left out, which only a build for tests allows, a named case fails.
//!
//! This test runs the other tests of this program, once for each wall. A failure counts only if another case held, so that a
//! sandbox that could not be made proves nothing.

use crate::tally::{CASES, HELD, tell};
use belljar_confine::group::CgroupHierarchies;
use belljar_confine::removal::{VARIABLE, Wall};
use belljar_testkit::skip::{SKIPS, skip};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_to_string};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

const CANARY: &str = "canary::sandbox_with_a_missing_wall_is_refused_before_any_program_runs";
const POSTURE: &str = "posture::every_sandbox_thread_has_exactly_the_documented_posture";
const INIT: &str = "posture::init::pid_1_holds_nothing_of_the_host";
const FILES: &str = "files::sandbox_cannot_read_or_change_host_files_or_escape_by_path";
const NETWORK: &str = "network::sandbox_reaches_no_host_by_address_name_or_socket";
const PRIVILEGES: &str = "privileges::sandbox_gains_no_privilege_and_makes_no_dangerous_call";
const STOPPED: &str = "lifetime::remains::no_process_is_left_of_a_sandbox_with_a_stopped_pid_1";
const PROGRAMS: &str = "programs::only_listed_programs_can_be_started";
const SWAPPED: &str = "swapped::path_swapped_after_the_host_check_is_not_mounted";

const RESOURCES: &str = "resources::resource_limits_hold_inside_the_sandbox";
const TABLES: &str = "resources::tables::greedy_sandbox_leaves_kernel_tables_for_others_and_the_host";
const MEMORY: &str = "resources::memory::program_exceeding_the_memory_limit_ends_the_sandbox";
const PROCESSOR: &str = "resources::processor::sandbox_gets_no_more_than_its_cpu_share";
const DISK: &str = "resources::disk::program_exceeding_the_disk_limit_ends_the_sandbox";

/// Number of runs at a time. They compete only for processors.
const AT_ONCE: usize = 2;

/// Time limit of a run. A longer one proves nothing.
const LONGEST: Duration = Duration::from_secs(240);

/// Starts the run with further groups and with mounts that propagate: the property that a wall removes must exist.
const CARELESS: [&str; 7] = ["unshare", "--mount", "--propagation", "shared", "setpriv", "--groups", "1,2"];

/// Walls that are limits, with their values. A missing one is visible only if the host's own limit is higher.
const LIMITS: [(Wall, Resource, u64); 8] = [
    (Wall::LimitCore, Resource::Core, 1),
    (Wall::LimitOpenFiles, Resource::Nofile, 65_536),
    (Wall::LimitProcesses, Resource::Nproc, 1_024),
    (Wall::LimitLockedMemory, Resource::Memlock, 8 << 20),
    (Wall::LimitPendingSignals, Resource::Sigpending, 4_096),
    (Wall::LimitMessageQueues, Resource::Msgqueue, 256 << 10),
    (Wall::LimitRealTime, Resource::Rtprio, 0),
    (Wall::LimitNiceness, Resource::Nice, 0),
];

/// The findings of one run.
#[derive(Debug, Default)]
struct RemovalFindings {
    held: usize,
    /// The cases that failed.
    wrong: BTreeSet<String>,
    /// Output of the run, for people.
    output: String,
}

#[test]
fn removing_any_wall_makes_a_case_fail() {
    raise_limits();
    let (shown, not_shown): (Vec<Wall>, Vec<Wall>) =
        Wall::ALL.iter().copied().partition(|wall| may_show(*wall));
    if !not_shown.is_empty() {
        let names: Vec<&str> = not_shown.iter().map(|wall| wall.as_str()).collect();
        let names = names.join(", ");
        skip("removing_any_wall_makes_a_case_fail, in part", &format!("nothing would show without {names}"));
    }
    // The control: with every wall in place, no case fails.
    let watchers: BTreeSet<&str> = shown.iter().map(|wall| watcher(*wall)).collect();
    let mut jobs: Vec<(Vec<Wall>, &str)> =
        watchers.into_iter().map(|watcher| (Vec::new(), watcher)).collect();
    jobs.extend(shown.iter().map(|wall| (vec![*wall], watcher(*wall))));
    jobs.extend(
        shown.iter().filter_map(|wall| behind(*wall).map(|front| (vec![front, *wall], watcher(*wall)))),
    );
    jobs.extend(shown.iter().filter_map(|wall| behind(*wall).map(|front| (vec![front], watcher(*wall)))));
    let found = run_all(jobs);
    let complaints = complaints(&shown, &found);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Returns the test and the case that detect a missing wall. No other test runs without it, so that no attempt can do harm.
fn missed_by(wall: Wall) -> (&'static str, &'static str) {
    match wall {
        Wall::PidNamespace => (POSTURE, "posture namespace pid is the host's"),
        Wall::IpcNamespace => (POSTURE, "posture namespace ipc is the host's"),
        Wall::UtsNamespace => (POSTURE, "posture namespace uts is the host's"),
        Wall::CgroupNamespace => (POSTURE, "posture namespace cgroup is the host's"),
        Wall::NetworkNamespace => (NETWORK, "NT1 TCP to loopback"),
        Wall::HostName => (POSTURE, "posture process: host_name"),
        Wall::HostUser => (INIT, "init is root on the host"),
        Wall::Groups => (POSTURE, "posture threads: Groups"),
        Wall::InsideUser => (POSTURE, "posture threads: Uid"),
        Wall::WipedMemory => (INIT, "init environment"),
        Wall::DeathSignal => (STOPPED, "LF1 belljar killed while PID 1 stands still"),
        Wall::Propagation => (POSTURE, "posture process: mounts_follow_others"),
        Wall::SameInode => (SWAPPED, "FS3 a folder in the place of another"),
        Wall::ReadOnlyBinds => (POSTURE, "posture mount at /usr"),
        Wall::NoSetId => (POSTURE, "posture mount at /workspace"),
        Wall::NoDevices => (POSTURE, "posture mount at /workspace"),
        Wall::ReadOnlyRoot => (POSTURE, "posture mount at /"),
        Wall::ReadOnlyProc => (POSTURE, "posture mount at /proc"),
        Wall::ScratchSize => (POSTURE, "posture mount at /tmp"),
        Wall::ScratchInodes => (TABLES, "RS8 inodes"),
        Wall::TerminalLimit => (TABLES, "RS8 terminals"),
        Wall::LimitWatches => (TABLES, "RS8 instances"),
        Wall::FilterLimit => (TABLES, "RS8 filters"),
        Wall::SocketMemoryLimit => (TABLES, "RS8 udp"),
        Wall::UserAttributes => (RESOURCES, "RS8 an access control list"),
        Wall::OwnWatches => (RESOURCES, "RS8 a watch on the host's programs"),
        Wall::LimitPendingSignals => (POSTURE, "posture limit Max pending signals"),
        Wall::LimitMessageQueues => (POSTURE, "posture limit Max msgqueue size"),
        Wall::Pivot => (INIT, "init reaches files of the host"),
        Wall::OldRoot => (POSTURE, "posture process: root_is_on_top"),
        Wall::HiddenMounts => (POSTURE, "posture process: mounts_are_listed"),
        Wall::FixedDevices => (POSTURE, "posture process: devices"),
        Wall::OwnTerminals => (POSTURE, "posture terminals are the host's"),
        Wall::LimitCore => (POSTURE, "posture limit Max core file size"),
        Wall::LimitOpenFiles => (POSTURE, "posture limit Max open files"),
        Wall::LimitProcesses => (POSTURE, "posture limit Max processes"),
        Wall::LimitLockedMemory => (POSTURE, "posture limit Max locked memory"),
        Wall::LimitRealTime => (POSTURE, "posture limit Max realtime priority"),
        Wall::LimitNiceness => (POSTURE, "posture limit Max nice priority"),
        Wall::MemoryLimit => (MEMORY, "RS2 anonymous"),
        Wall::CpuLimit => (PROCESSOR, "RS6 spinning"),
        Wall::DiskLimit => (DISK, "RS3 plain in a copy"),
        Wall::Landlock => (POSTURE, "posture process: domains_left"),
        Wall::LandlockScopes => (NETWORK, "NT4 connect to @abstract"),
        Wall::ListedPrograms => (PROGRAMS, "PG1 by its path"),
        Wall::ClosedPrograms => (PROGRAMS, "PG1 by the loader"),
        Wall::NoProgramsHere => (PROGRAMS, "PG1 by the loader, a copy"),
        Wall::MemoryFiles => (PROGRAMS, "PG1 by a file without a name"),
        Wall::BoundingSet => (POSTURE, "posture threads: CapBnd"),
        Wall::Capabilities => (INIT, "init CapPrm"),
        Wall::NoNewPrivileges => (POSTURE, "posture threads: NoNewPrivs"),
        Wall::NotDumpable => (POSTURE, "posture process: init_dumpable"),
        Wall::SystemCalls => (PRIVILEGES, "PK2 Clone user"),
        Wall::OpenAt2 => (FILES, "FS3 openat2: past every rule"),
        Wall::I386Entry => (PRIVILEGES, "PK5 I386 getpid"),
        Wall::X32Entry => (PRIVILEGES, "PK5 X32 getpid"),
        Wall::Guard => (NETWORK, "NT4 connect to /workspace/listening by its path"),
        Wall::OwnSockets => (NETWORK, "NT4 connect to /workspace/listening by its path"),
        Wall::OwnSession => (INIT, "init has started a program with a session"),
        Wall::ClosedDescriptors => (POSTURE, "posture descriptors"),
        Wall::ClosedInInit => (INIT, "init holds"),
        Wall::Umask => (POSTURE, "posture threads: Umask"),
        Wall::Views => (POSTURE, "posture mount at /lent"),
        Wall::Canary => (CANARY, "canary without system_calls"),
        Wall::Environment => (POSTURE, "posture environment"),
    }
}

fn watcher(wall: Wall) -> &'static str {
    missed_by(wall).0
}

/// Returns a wall that hides the absence of this one. The case must fail with both missing, and hold with only the first one
/// missing.
fn behind(wall: Wall) -> Option<Wall> {
    match wall {
        Wall::LandlockScopes => Some(Wall::NetworkNamespace),
        _ => None,
    }
}

/// Returns true if this machine and this user have the property that the wall removes.
fn may_show(wall: Wall) -> bool {
    let needs_root = matches!(wall, Wall::Groups | Wall::Propagation | Wall::SameInode | Wall::CpuLimit)
        || watcher(wall) == INIT;
    let limit = LIMITS.iter().find(|(limited, ..)| *limited == wall);
    let is_lower = limit.is_none_or(|(_, resource, limit)| {
        getrlimit(*resource).maximum.is_none_or(|maximum| maximum > *limit)
    });
    let has_its_groups = wall != Wall::SocketMemoryLimit
        || CgroupHierarchies::find().is_ok_and(|groups| groups.version() == 1);
    is_lower && has_its_groups && (geteuid().is_root() || !needs_root)
}

/// Raises the limits for all child processes as high as possible. Not every root may raise its own limits.
fn raise_limits() {
    for (_, resource, limit) in LIMITS {
        // High enough for the controls of these cases.
        let higher = (limit * 4).max(limit + 10);
        let _ = setrlimit(resource, Rlimit { current: Some(higher), maximum: Some(higher) });
    }
}

/// Runs a test once for each set of missing walls.
fn run_all(jobs: Vec<(Vec<Wall>, &'static str)>) -> BTreeMap<(Vec<Wall>, &'static str), RemovalFindings> {
    let jobs = Mutex::new(jobs);
    let found = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((walls, watcher)) = { jobs.lock().unwrap().pop() } {
                    let result = run(&walls, watcher);
                    found.lock().unwrap().insert((walls, watcher), result);
                }
            });
        }
    });
    found.into_inner().unwrap()
}

fn run(walls: &[Wall], watcher: &str) -> RemovalFindings {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases");
    let own = std::env::current_exe().unwrap();
    let mut command = match geteuid().is_root() {
        true => {
            let mut command = Command::new(CARELESS[0]);
            command.args(&CARELESS[1..]).arg(own);
            command
        }
        false => Command::new(own),
    };
    // The canary would refuse a sandbox with a missing wall, and no test could detect the wall's absence.
    let canary = (!walls.is_empty()).then_some(Wall::Canary);
    let names: Vec<&str> = walls.iter().copied().chain(canary).map(Wall::as_str).collect();
    command
        .args(["--exact", watcher])
        .env(VARIABLE, names.join(","))
        .env(CASES, &cases)
        .env(SKIPS, folder.path().join("skips"))
        .env_remove(crate::tally::FINDINGS)
        .stdin(Stdio::null())
        .stdout(Stdio::from(File::create(folder.path().join("output")).unwrap()))
        .stderr(Stdio::from(File::create(folder.path().join("errors")).unwrap()));
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + LONGEST;
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    let mut found = RemovalFindings::read(&cases);
    found.output =
        ["output", "errors"].map(|name| read_to_string(folder.path().join(name)).unwrap()).concat();
    found
}

/// Returns the walls whose absence wasn't detected, and failures with every wall in place. Prints the detected ones.
fn complaints(walls: &[Wall], found: &BTreeMap<(Vec<Wall>, &'static str), RemovalFindings>) -> Vec<String> {
    let mut complaints = Vec::new();
    for ((missing, watcher), found) in found.iter().filter(|((missing, _), _)| missing.is_empty()) {
        if found.held == 0 || !found.wrong.is_empty() {
            complaints.push(format!("with every wall there, {missing:?} {watcher} finds: {found:?}"));
        }
    }
    for wall in walls {
        let none = RemovalFindings::default();
        let of = |missing: Vec<Wall>| found.get(&(missing, watcher(*wall))).unwrap_or(&none);
        let (alone, both) = match behind(*wall) {
            None => (&none, of(vec![*wall])),
            Some(front) => (of(vec![front]), of(vec![front, *wall])),
        };
        let missed: Vec<&String> = both.wrong.difference(&alone.wrong).collect();
        tell(&told(*wall, &missed));
        if both.held == 0 {
            complaints.push(format!("{}: nothing held without it: {}", wall.as_str(), both.output));
        } else if !missed.iter().any(|case| case.as_str() == missed_by(*wall).1) {
            let (name, without, case) = (wall.as_str(), wall.without(), missed_by(*wall).1);
            complaints.push(format!("{name}: {without}, and not missed by {case:?}, but by {missed:?}"));
        }
    }
    complaints
}

/// Returns a line about a wall: the cases that detect its absence.
fn told(wall: Wall, missed: &[&String]) -> String {
    const SHOWN: usize = 3;
    let (_, expected) = missed_by(wall);
    let (first, others): (Vec<&str>, Vec<&str>) =
        missed.iter().map(|case| case.as_str()).partition(|case| *case == expected);
    let shown: Vec<&str> = first.into_iter().chain(others).take(SHOWN).collect();
    let more = missed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("without {:22}{}{more}", wall.as_str(), shown.join(", "))
}

// === impl RemovalFindings ===

impl RemovalFindings {
    fn read(file: &Path) -> Self {
        let mut found = Self::default();
        for line in read_to_string(file).unwrap_or_default().lines() {
            match line.split_once('\t') {
                Some((HELD, held)) => found.held += held.parse::<usize>().unwrap_or_default(),
                Some((case, _)) => {
                    found.wrong.insert(case.to_owned());
                }
                None => {}
            }
        }
        found
    }
}
