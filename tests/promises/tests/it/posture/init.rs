//! PID 1 as the host sees it: it has no user of the host, and no open file of the host.

use crate::belljar::belljar;
use crate::holding::HoldingProbe;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::StartMethod;
use belljar_promises::attempt::Attempt;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{User, World};
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn pid_1_holds_nothing_of_the_host() {
    if !geteuid().is_root() {
        return skip("pid_1_holds_nothing_of_the_host", "only root may look at its descriptors");
    }
    let tally = Tally::new("PID 1");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        for way in StartMethod::EXEC {
            let nothing = Attempt { case: "nothing".to_owned(), steps: Vec::new() };
            let held = HoldingProbe::inside(&scene, *way, &nothing);
            let init = child_of(held.pid()).expect("PID 1 is belljar's child");
            judge(compare(&scene, init), &format!("{way:?} {:?}", world.user()), &tally);
        }
    });
    tally.close();
}

/// Properties of PID 1, each with the found and the required value.
pub(crate) type InitProperties = Vec<(&'static str, Value, Value)>;

pub(crate) fn judge(compared: InitProperties, place: &str, tally: &Tally) {
    for (what, found, expected) in compared {
        let verdict = match found == expected {
            true => Verdict::Held,
            false => Verdict::Escaped(format!("{found}, not {expected}")),
        };
        tally.count("init", &format!("init {what}"), place, verdict);
    }
}

pub(crate) fn compare(scene: &PreparedHost<'_>, init: u32) -> InitProperties {
    let status = fs::read_to_string(format!("/proc/{init}/status")).unwrap();
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    // PID 1 closes what it needed for building the sandbox when the program begins.
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut before = held_by(init);
    // PID 1 may open something for a moment: only what it holds at two consecutive moments counts.
    let held = loop {
        std::thread::sleep(Duration::from_millis(1));
        let now = held_by(init);
        let held: Vec<String> = now.iter().filter(|one| before.contains(one)).cloned().collect();
        if held.is_empty() || Instant::now() >= deadline {
            break held;
        }
        before = now;
    };
    let is_root = value("Uid").split_whitespace().any(|uid| uid == "0");
    let environment = fs::read(format!("/proc/{init}/environ")).unwrap_or_default();
    let nothing = json!("0".repeat(16));
    let mut compared = vec![
        ("number", json!(value("NSpid").split_whitespace().last()), json!("1")),
        ("NoNewPrivs", json!(value("NoNewPrivs")), json!("1")),
        ("Seccomp", json!(value("Seccomp")), json!("2")),
        ("is root on the host", json!(is_root), json!(false)),
        ("holds", json!(held), json!([])),
        ("environment", json!(environment.iter().all(|byte| *byte == 0)), json!(true)),
        ("arguments", json!(arguments(init)), json!("belljar-init")),
        ("reaches files of the host", json!(reaches(init, scene)), json!(false)),
        ("has started a program with a session", json!(leads_a_session(child_of(init))), json!(true)),
    ];
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        compared.push((set, json!(value(set)), nothing.clone()));
    }
    // The control: the process that starts the sandbox, as root or not, reaches the secret and has other arguments.
    if scene.world.user() == User::Own {
        assert!(reaches(std::process::id(), scene), "the control reaches nothing");
        assert_ne!(arguments(std::process::id()), "belljar-init");
    }
    compared
}

fn arguments(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).trim_end_matches('\0').to_owned()
}

/// Returns true if a process leads a session. The field follows the name, which may contain any character.
fn leads_a_session(pid: Option<u32>) -> bool {
    let stat = pid.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok()).unwrap_or_default();
    let session = stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(3);
    session.is_some_and(|session| session.parse() == Ok(pid.unwrap_or_default()))
}

/// Returns true if a secret is visible from the very root of a process's mount namespace, which no change of root hides.
fn reaches(pid: u32, scene: &PreparedHost<'_>) -> bool {
    let is_there = |secret: &PathBuf| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{pid}/ns/mnt")).args(["--", "/usr/bin/test", "-e"]).arg(secret);
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        // Any result other than a clear "no" counts as reached.
        status.code() != Some(1)
    };
    scene.secrets.iter().any(is_there)
}

/// Returns the files of the host that a process has open: everything except sockets, pipes and unnamed files.
fn held_by(pid: u32) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok);
    let targets =
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).map(|target| target.display().to_string());
    let is_own = |target: &String| {
        ["socket:[", "anon_inode:", "mnt:[", "pipe:["].iter().any(|own| target.starts_with(own))
            // With control groups of version 1, PID 1 reads the socket memory of its own group.
            || target.ends_with("/memory.kmem.tcp.usage_in_bytes")
    };
    targets.filter(|target| !is_own(target)).collect()
}

/// Returns the process that a process has started, if it has one: for belljar, its PID 1.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
