//! The processes of a container, as the relay sees them: all but PID 1 and itself.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::time::Duration;

/// How many there are.
pub(super) fn count() -> u64 {
    others().iter().filter(|(_, state)| !matches!(state, b'Z' | b'X')).count() as u64
}

/// Stops all of them. One that starts another meanwhile is seen again, until none is left that could.
pub(super) fn stop() {
    // Whoever waits for a disk stops when it has what it waits for.
    const ROUNDS: usize = 200;
    for _ in 0..ROUNDS {
        let running: Vec<Pid> = others()
            .into_iter()
            .filter_map(|(pid, state)| (!matches!(state, b'T' | b't' | b'Z' | b'X')).then_some(pid))
            .collect();
        if running.is_empty() {
            return;
        }
        signal(&running, Signal::STOP);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets all of them go on.
pub(super) fn resume() {
    let all: Vec<Pid> = others().into_iter().map(|(pid, _)| pid).collect();
    signal(&all, Signal::CONT);
}

fn signal(processes: &[Pid], signal: Signal) {
    for pid in processes {
        // One that has ended needs no signal.
        let _ = kill_process(*pid, signal);
    }
}

/// With the letter of its state, which stands behind its name; the name is in parentheses and may hold anything.
fn others() -> Vec<(Pid, u8)> {
    let own = getpid();
    let state = |pid: Pid| {
        let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        stat.get(after_name + 2).copied()
    };
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| !pid.is_init() && *pid != own)
        .filter_map(|pid| Some((pid, state(pid)?)))
        .collect()
}
