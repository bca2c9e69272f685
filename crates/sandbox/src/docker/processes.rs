//! The processes of a container, as the relay sees them: all but PID 1 and itself.

use belljar_confine::listing::numbers_in;
use belljar_confine::thread_state::ThreadState;
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::time::Duration;

/// Returns the number of processes.
pub(super) fn count() -> u64 {
    let is_alive = |pid: Pid, state: ThreadState| match state.is_uncollected() {
        true => threads(pid).iter().any(|thread| !thread.is_over()),
        false => !state.is_over(),
    };
    others().into_iter().filter(|(pid, state)| is_alive(*pid, *state)).count() as u64
}

/// Stops all of them. One that starts another meanwhile is seen again, until none is left that could.
pub(super) fn stop() {
    // A process that waits for a disk stops when its wait is over.
    const ROUNDS: usize = 200;
    for _ in 0..ROUNDS {
        let running: Vec<Pid> = others()
            .into_iter()
            // The state of an unreaped process is only that of its first thread; others may live on.
            .filter(|(pid, state)| {
                state.runs() || state.is_uncollected() && threads(*pid).into_iter().any(ThreadState::runs)
            })
            .map(|(pid, _)| pid)
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

/// Returns the states of a process's threads.
fn threads(pid: Pid) -> Vec<ThreadState> {
    let place = format!("/proc/{}/task", pid.as_raw_nonzero());
    let threads = numbers_in(&place).unwrap_or_default().into_iter();
    threads.filter_map(|thread| state(&format!("{place}/{thread}/stat"))).collect()
}

fn state(path: &str) -> Option<ThreadState> {
    ThreadState::of(&std::fs::read(path).ok()?)
}

/// Returns the other processes, each with the state of its first thread.
fn others() -> Vec<(Pid, ThreadState)> {
    let own = getpid();
    let all = numbers_in("/proc").unwrap_or_default().into_iter().filter_map(Pid::from_raw);
    all.filter(|pid| !pid.is_init() && *pid != own)
        .filter_map(|pid| Some((pid, state(&format!("/proc/{}/stat", pid.as_raw_nonzero()))?)))
        .collect()
}
