//! A look at what a sandbox holds while all of it is stopped.
//!
//! A look at processes that run misses what is passed from one to another meanwhile, and processes that start the next one
//! and end. While everything is stopped, what is held is in a table of descriptors, mapped, or in flight: in a local socket,
//! sent and not received. What is in flight can't be looked into, but the kernel says of each socket how much that is.

use super::Measured;
use super::processes::{self, Held};
use belljar_confine::listing::numbers_in;
use belljar_confine::sealed::Handle;
use belljar_confine::thread_state::ThreadState;
use std::fs;
use std::time::{Duration, Instant};

/// What was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inspection {
    /// What the files take that have no name any more and are held in sight.
    pub(super) held: Measured,
    /// Whether others may be held out of sight.
    pub(super) may_hide: bool,
}

/// It is not tried for longer than this.
const PATIENCE: Duration = Duration::from_millis(200);

const PAUSE: Duration = Duration::from_millis(1);

/// Stops a sandbox for the time of a look. One that doesn't stop, or can't be stopped from here, may hide anything.
pub(super) fn inspect(sandbox: &Handle) -> Inspection {
    let stopped = Stopped(sandbox);
    let is_still = stopped.bring_about();
    let found = Held::of(sandbox);
    drop(stopped);
    let held = found.measured();
    Inspection { held, may_hide: !is_still || found.has_some_in_flight || !held.is_whole }
}

/// Everything in a sandbox goes on when this is dropped.
struct Stopped<'a>(&'a Handle);

// === impl Stopped ===

impl Stopped<'_> {
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

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // One that can't be told so is over.
        let _ = self.0.stop_all(false);
    }
}

/// Whether no thread of a process makes a system call any more. One that sleeps in the kernel without hearing signals stops
/// when it is done with the one that it is in; such is one that waits for its child to become a program.
fn is_stopped(pid: i32) -> bool {
    let place = format!("/proc/{pid}/task");
    let threads = numbers_in(&place).unwrap_or_default().into_iter();
    let mut states =
        threads.filter_map(|thread| ThreadState::of(&fs::read(format!("{place}/{thread}/stat")).ok()?));
    states.all(|state| !state.runs() || state.waits_deaf())
}
