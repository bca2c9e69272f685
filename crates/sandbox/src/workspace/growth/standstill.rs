//! A look at what a sandbox holds while all of it is stopped.
//!
//! A look at running processes misses what is passed from one to another meanwhile, and processes that start the next one
//! and end. While everything is stopped, each file that is held is in a table of descriptors, mapped, or in flight: sent
//! over a local socket and not received. Descriptors in flight can't be looked into, but the kernel reports their number
//! for each socket.

use super::TreeUsage;
use super::processes::{self, HeldFiles};
use belljar_confine::listing::numbers_in;
use belljar_confine::sealed::InitHandle;
use belljar_confine::thread_state::ThreadState;
use std::fs;
use std::time::{Duration, Instant};

/// Result of an inspection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inspection {
    /// Disk usage of files without a name that are held in sight.
    pub(super) held: TreeUsage,
    /// True if others may be held out of sight.
    pub(super) may_hide: bool,
}

/// Maximum time for attempts.
const PATIENCE: Duration = Duration::from_millis(200);

const PAUSE: Duration = Duration::from_millis(1);

/// Stops a sandbox for the time of a look. One that doesn't stop, or can't be stopped from here, may hide anything.
pub(super) fn inspect(sandbox: &InitHandle) -> Inspection {
    let stopped = StoppedSandbox(sandbox);
    let is_still = stopped.bring_about();
    let found = HeldFiles::of(sandbox);
    drop(stopped);
    let held = found.measured();
    Inspection { held, may_hide: !is_still || found.has_some_in_flight || !held.is_whole }
}

/// A stopped sandbox. Everything in it continues when this is dropped.
struct StoppedSandbox<'a>(&'a InitHandle);

// === impl StoppedSandbox ===

impl StoppedSandbox<'_> {
    fn bring_about(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.0.stop_all(true).is_err() {
                return false;
            }
            std::thread::sleep(PAUSE);
            let all = processes::descendants(self.0.pid());
            // In a stopped sandbox the list is complete, and stays as it is.
            if all.iter().all(|pid| is_stopped(*pid)) && processes::descendants(self.0.pid()) == all {
                return true;
            }
        }
        false
    }
}

impl Drop for StoppedSandbox<'_> {
    fn drop(&mut self) {
        // A sandbox that can't receive this is over.
        let _ = self.0.stop_all(false);
    }
}

/// Returns true if no thread of a process makes a system call any more. A thread that sleeps uninterruptibly in the kernel
/// stops when its call is done, for example one that waits for its child to execute a program.
fn is_stopped(pid: i32) -> bool {
    let place = format!("/proc/{pid}/task");
    let threads = numbers_in(&place).unwrap_or_default().into_iter();
    let mut states =
        threads.filter_map(|thread| ThreadState::of(&fs::read(format!("{place}/{thread}/stat")).ok()?));
    states.all(|state| !state.runs() || state.waits_deaf())
}
