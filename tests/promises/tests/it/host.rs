//! Observations on the host: processes, mounts, files, messages.

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;

/// Directories of the host in which a name made inside would turn up.
const LOOKED_AT: [&str; 12] = [
    "/",
    "/usr",
    "/usr/bin",
    "/etc",
    "/dev",
    "/dev/shm",
    "/dev/mqueue",
    "/root",
    "/run",
    "/tmp",
    "/var/tmp",
    "/home",
];

/// Returns the places on the host where a mark from inside is visible.
pub(crate) fn traces_of(mark: &str) -> Vec<String> {
    let mut traces = Vec::new();
    for directory in LOOKED_AT {
        let listed = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        let names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
        // The secrets that the scene itself has planted contain the mark, too.
        let made = names.filter(|name| name.contains(mark) && *name != format!("belljar-{mark}"));
        traces.extend(made.map(|name| format!("{directory}/{name} on the host")));
    }
    for file in ["/proc/self/mountinfo", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"] {
        if fs::read_to_string(file).is_ok_and(|text| text.contains(mark)) {
            traces.push(format!("the mark in {file}"));
        }
    }
    traces
}

/// Returns the processes with this text among their arguments. The text is unique, so these are the test's own
/// processes.
pub(crate) fn processes(mark: &str) -> Vec<Pid> {
    let listed = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = listed.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    processes_among(pids, mark).collect()
}

fn processes_among(pids: impl IntoIterator<Item = Pid>, mark: &str) -> impl Iterator<Item = Pid> {
    pids.into_iter().filter(move |pid| {
        fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    })
}

/// Returns a pidfd of the process that a process has started, if it has one. The pidfd protects against reuse of the
/// number.
pub(crate) fn child_of(parent: u32) -> Option<OwnedFd> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let child = Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)?;
    pidfd_open(child, PidfdFlags::empty()).ok()
}

/// Returns true if there is such a process. Looks several times, because each process may soon be replaced by another
/// one.
pub(crate) fn is_anybody_there(mark: &str) -> bool {
    const LOOKS: usize = 6;
    (0..LOOKS).any(|_| !processes(mark).is_empty())
}

/// Returns the arguments of these processes.
pub(crate) fn names_of(pids: &[Pid]) -> Vec<String> {
    let line = |pid: &Pid| fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    pids.iter().map(|pid| String::from_utf8_lossy(&line(pid)).replace('\0', " ")).collect()
}

/// Kills every process with a control's mark, even if processes keep replacing each other.
pub(crate) fn end_all(mark: &str) {
    const LOOKS: usize = 4;
    let mut quiet = 0;
    while quiet < LOOKS {
        let found = processes(mark);
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        found.into_iter().for_each(|pid| end(pid, mark));
    }
}

/// Kills this process, and no other that got its number since.
fn end(pid: Pid, mark: &str) {
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The pidfd is the right process if the number still belongs to a process with the mark.
    if processes_among([pid], mark).next().is_some() {
        let _ = pidfd_send_signal(held, Signal::KILL);
    }
}
