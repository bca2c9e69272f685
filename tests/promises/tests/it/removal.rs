//! Every wall is missed by somebody: with any one left out, which only a build for tests can, some case is not as it
//! should be.
//!
//! This test runs the others of this very program, once for each wall. It counts that something was wrong only if
//! something else held, so that a sandbox that could not be made proves nothing.

use crate::tally::{CASES, HELD, tell};
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

const POSTURE: &str = "posture::every_thread_has_exactly_the_posture_that_is_written_down";
const INIT: &str = "posture::init::pid_1_holds_nothing_of_the_host";
const FILES: &str = "files::no_file_of_the_host_is_read_or_changed_and_no_path_leads_out";
const NETWORK: &str = "network::nobody_outside_is_reached_by_any_address_name_or_socket";
const PRIVILEGES: &str = "privileges::no_right_is_gained_and_no_dangerous_call_reaches_the_kernel";
const STOPPED: &str = "lifetime::remains::nobody_is_left_of_a_sandbox_whose_first_process_stands_still";
const SWAPPED: &str = "swapped::what_was_swapped_since_the_host_looked_is_not_lent";

/// Runs at a time. They wait for each other's processors, and not for more.
const AT_ONCE: usize = 2;

/// A run that takes longer has proved nothing.
const LONGEST: Duration = Duration::from_secs(150);

/// Further groups, and mounts that spread: what a wall takes away must be there.
const CARELESS: [&str; 7] = ["unshare", "--mount", "--propagation", "shared", "setpriv", "--groups", "1,2"];

/// Walls that are limits, and how low they are: they show where the host's own are higher.
const LIMITS: [(Wall, Resource, u64); 6] = [
    (Wall::LimitCore, Resource::Core, 1),
    (Wall::LimitOpenFiles, Resource::Nofile, 65_536),
    (Wall::LimitProcesses, Resource::Nproc, 4_096),
    (Wall::LimitLockedMemory, Resource::Memlock, 8 << 20),
    (Wall::LimitRealTime, Resource::Rtprio, 0),
    (Wall::LimitNiceness, Resource::Nice, 0),
];

/// What one run found.
#[derive(Debug, Default)]
struct Found {
    held: usize,
    /// What was not as it should be.
    wrong: BTreeSet<String>,
    /// What it said, for people.
    output: String,
}

#[test]
fn every_wall_is_missed_by_somebody() {
    raise_limits();
    let (shown, not_shown): (Vec<Wall>, Vec<Wall>) =
        Wall::ALL.iter().copied().partition(|wall| may_show(*wall));
    if !not_shown.is_empty() {
        let names: Vec<&str> = not_shown.iter().map(|wall| wall.as_str()).collect();
        let names = names.join(", ");
        skip("every_wall_is_missed_by_somebody, in part", &format!("nothing would show without {names}"));
    }
    // The control: with every wall there, nobody misses one.
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

/// Who misses a wall. Nobody else is run without it, so that nothing is tried that a missing wall would let do harm.
fn watcher(wall: Wall) -> &'static str {
    match wall {
        Wall::HostUser
        | Wall::WipedMemory
        | Wall::Pivot
        | Wall::Capabilities
        | Wall::ClosedInInit
        | Wall::OwnSession => INIT,
        Wall::OpenAt2 => FILES,
        Wall::NetworkNamespace | Wall::LandlockScopes | Wall::Guard | Wall::OwnSockets => NETWORK,
        Wall::SystemCalls | Wall::I386Entry | Wall::X32Entry => PRIVILEGES,
        Wall::DeathSignal => STOPPED,
        Wall::SameInode => SWAPPED,
        Wall::PidNamespace
        | Wall::IpcNamespace
        | Wall::UtsNamespace
        | Wall::CgroupNamespace
        | Wall::HostName
        | Wall::Groups
        | Wall::InsideUser
        | Wall::Propagation
        | Wall::ReadOnlyBinds
        | Wall::NoSetId
        | Wall::NoDevices
        | Wall::ReadOnlyRoot
        | Wall::ReadOnlyProc
        | Wall::ScratchSize
        | Wall::HiddenMounts
        | Wall::FixedDevices
        | Wall::OwnTerminals
        | Wall::LimitCore
        | Wall::LimitOpenFiles
        | Wall::LimitProcesses
        | Wall::LimitLockedMemory
        | Wall::LimitRealTime
        | Wall::LimitNiceness
        | Wall::Landlock
        | Wall::BoundingSet
        | Wall::NoNewPrivileges
        | Wall::NotDumpable
        | Wall::OldRoot
        | Wall::ClosedDescriptors
        | Wall::Umask
        | Wall::Views
        | Wall::Environment => POSTURE,
    }
}

/// The wall behind which another one stands, whose absence alone nobody could notice: it is missed where both are
/// missing, and something that it still held with the first one missing is held no more.
fn behind(wall: Wall) -> Option<Wall> {
    match wall {
        Wall::LandlockScopes => Some(Wall::NetworkNamespace),
        _ => None,
    }
}

/// Whether this machine and this user have what the wall takes away.
fn may_show(wall: Wall) -> bool {
    let needs_root =
        matches!(wall, Wall::Groups | Wall::Propagation | Wall::SameInode) || watcher(wall) == INIT;
    let limit = LIMITS.iter().find(|(limited, ..)| *limited == wall);
    let is_lower = limit.is_none_or(|(_, resource, limit)| {
        getrlimit(*resource).maximum.is_none_or(|maximum| maximum > *limit)
    });
    is_lower && (geteuid().is_root() || !needs_root)
}

/// Has whoever is started from here have the highest limits that may be had. Not every root may raise its own.
fn raise_limits() {
    for (_, resource, limit) in LIMITS {
        let higher = limit + 10;
        let _ = setrlimit(resource, Rlimit { current: Some(higher), maximum: Some(higher) });
    }
}

/// Runs a test once for each set of walls that are to be missing.
fn run_all(jobs: Vec<(Vec<Wall>, &'static str)>) -> BTreeMap<(Vec<Wall>, &'static str), Found> {
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

fn run(walls: &[Wall], watcher: &str) -> Found {
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
    let names: Vec<&str> = walls.iter().map(|wall| wall.as_str()).collect();
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
    let mut found = Found::read(&cases);
    found.output =
        ["output", "errors"].map(|name| read_to_string(folder.path().join(name)).unwrap()).concat();
    found
}

/// What was not noticed, or was where there was nothing to notice. Tells what was.
fn complaints(walls: &[Wall], found: &BTreeMap<(Vec<Wall>, &'static str), Found>) -> Vec<String> {
    let mut complaints = Vec::new();
    for ((missing, watcher), found) in found.iter().filter(|((missing, _), _)| missing.is_empty()) {
        if found.held == 0 || !found.wrong.is_empty() {
            complaints.push(format!("with every wall there, {missing:?} {watcher} finds: {found:?}"));
        }
    }
    for wall in walls {
        let none = Found::default();
        let of = |missing: Vec<Wall>| found.get(&(missing, watcher(*wall))).unwrap_or(&none);
        let (alone, both) = match behind(*wall) {
            None => (&none, of(vec![*wall])),
            Some(front) => (of(vec![front]), of(vec![front, *wall])),
        };
        let missed: Vec<&String> = both.wrong.difference(&alone.wrong).collect();
        tell(&told(*wall, &missed));
        if both.held == 0 {
            complaints.push(format!("{}: nothing held without it: {}", wall.as_str(), both.output));
        } else if missed.is_empty() {
            complaints.push(format!("{}: nobody misses it ({})", wall.as_str(), wall.without()));
        }
    }
    complaints
}

/// A line about a wall: who misses it.
fn told(wall: Wall, missed: &[&String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = missed.iter().take(SHOWN).map(|case| case.as_str()).collect();
    let more = missed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("without {:22}{}{more}", wall.as_str(), shown.join(", "))
}

// === impl Found ===

impl Found {
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
