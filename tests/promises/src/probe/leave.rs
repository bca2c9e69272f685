//! Leaves processes behind. Every process that stays has its mark among its arguments, and exits by itself in the end.

use super::kernel::{self, call_named};
use super::machine::StepStop;
use belljar_promises::attempt::LeftBehindKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The command of a probe that stays.
pub(super) const STAY: &str = "stay";

/// Maximum lifetime of a process that stays, in every case.
const LONGEST: Duration = Duration::from_secs(40);

/// Every kind, with the name that its processes get.
const WAYS: [(LeftBehindKind, &str); 7] = [
    (LeftBehindKind::Child, "child"),
    (LeftBehindKind::Orphan, "orphan"),
    (LeftBehindKind::Session, "session"),
    (LeftBehindKind::Deaf, "deaf"),
    (LeftBehindKind::Stopped, "stopped"),
    (LeftBehindKind::Closed, "closed"),
    (LeftBehindKind::Restless, "restless"),
];

/// Leaves a process of every kind behind, prints that it did, and stays itself.
pub(super) fn everyone(mark: &str) -> Result<(), String> {
    for (way, _) in WAYS {
        leave(way, mark).map_err(|stop| format!("{stop:?}"))?;
    }
    println!("everyone is there");
    thread::sleep(LONGEST);
    Ok(())
}

/// Leaves a process behind.
pub(super) fn leave(how: LeftBehindKind, mark: &str) -> Result<i64, StepStop> {
    let name = WAYS.iter().find(|(way, _)| *way == how).map_or("", |(_, name)| *name);
    let stay = || command(&[STAY, name, mark]);
    let started = match how {
        LeftBehindKind::Orphan => command(&[STAY, "parent", mark]).status().map(drop),
        LeftBehindKind::Closed => stay().stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop),
        _ => stay().spawn().map(drop),
    };
    started.map_err(|error| StepStop::Said(error.to_string()))?;
    // Give the process time to reach its state.
    thread::sleep(Duration::from_millis(20));
    Ok(0)
}

/// Runs as a process that stays.
pub(super) fn stay(arguments: &[&str]) -> Result<(), String> {
    let [_, how, mark] = arguments else { return Err("stay how, under which mark?".to_owned()) };
    match *how {
        "parent" => {
            // The new process is orphaned at once.
            return command(&[STAY, "orphan", mark]).spawn().map(drop).map_err(|error| error.to_string());
        }
        "session" => {
            let _ = call_named(libc::SYS_setsid, [0; 6]);
        }
        "deaf" => (1..=64).for_each(kernel::ignore),
        "stopped" => return stopped(),
        "restless" => return restless(),
        _ => {}
    }
    thread::sleep(LONGEST);
    Ok(())
}

/// Stops, and stops again whenever another process continues it. The kernel continues it when its process group is
/// orphaned.
fn stopped() -> Result<(), String> {
    let (own, end) = (u64::from(std::process::id()), Instant::now() + LONGEST);
    kernel::ignore(libc::SIGHUP);
    while Instant::now() < end {
        let _ = call_named(libc::SYS_kill, [own, libc::SIGSTOP as u64, 0, 0, 0, 0]);
    }
    Ok(())
}

/// Forks and lets the parent exit, again and again: a process that is killed from a list has already exited.
fn restless() -> Result<(), String> {
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(60));
        match kernel::fork() {
            // The parent exits, the child continues.
            Ok(Some(_)) => kernel::end(0),
            Ok(None) => {}
            Err(errno) => return Err(format!("fork: {errno:?}")),
        }
    }
    Ok(())
}

fn command(arguments: &[&str]) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(own);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    command
}
