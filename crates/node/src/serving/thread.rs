//! The thread that serves the hatches of one run.
//!
//! What a sandbox sends can make it slow, and on kernels before Linux 6.16 have it sleep
//! (`belljar_confine::passed_descriptors`). So nothing waits for it longer than [`END_WITHIN`], and what ends a run wakes it.

use belljar_confine::passed_descriptors;
use belljar_egress::proxy::{Proxy, Serving};
use rustix::process::Pid;
use std::io;
use std::time::{Duration, Instant};

/// The thread of one run. Dropping it ends what it serves.
#[derive(Debug)]
pub struct HatchThread {
    proxy: Proxy,
}

/// The longest time that the end of a run waits for its thread.
const END_WITHIN: Duration = Duration::from_secs(3);

/// A thread that has not ended by then is interrupted, and again after each such time.
const INTERRUPTED_AFTER: Duration = Duration::from_millis(100);

// === impl HatchThread ===

impl HatchThread {
    /// Starts one.
    ///
    /// # Errors
    /// The system's, when there can be no more threads or descriptors.
    pub fn start() -> io::Result<Self> {
        Ok(Self { proxy: Proxy::start()? })
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Ends what is served; false if the thread could not be brought to it within [`END_WITHIN`]: then records may be missing.
    pub(crate) fn end(&self, serving: &Serving) -> bool {
        let has_ended = insist(self.proxy.thread_id(), |limit| serving.end_within(limit));
        if !has_ended {
            tracing::error!(
                within_seconds = END_WITHIN.as_secs(),
                "the thread of a hatch does not end: it is left behind, and records of its calls may be missing"
            );
        }
        has_ended
    }
}

impl Drop for HatchThread {
    fn drop(&mut self) {
        let thread = self.proxy.thread_id();
        if !insist(thread, |limit| self.proxy.end_within(limit)) {
            tracing::error!(thread = thread.as_raw_nonzero(), "the thread of a run's hatches is left behind");
        }
    }
}

/// Waits for an end, and interrupts the thread as often as it takes.
fn insist(thread: Pid, mut has_ended_within: impl FnMut(Duration) -> bool) -> bool {
    let given_up = Instant::now() + END_WITHIN;
    while !has_ended_within(INTERRUPTED_AFTER) {
        if Instant::now() >= given_up {
            return false;
        }
        // It may have ended in between.
        let _ = passed_descriptors::interrupt(thread);
    }
    true
}
