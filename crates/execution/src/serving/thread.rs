//! The thread that serves the hatches of one run.
//!
//! A sandbox can slow this thread down by what it sends, and on kernels before Linux 6.16 make it sleep
//! (`belljar_confine::passed_descriptors`). So no task waits for it longer than [`END_WITHIN`], and the end of a run interrupts
//! it.

use belljar_confine::passed_descriptors;
use belljar_egress::proxy::{Proxy, ServedRun};
use rustix::process::Pid;
use std::io;
use std::time::{Duration, Instant};

/// The thread that serves one run. Dropping it ends what it serves.
#[derive(Debug)]
pub struct HatchThread {
    proxy: Proxy,
}

/// Maximum time for which the end of a run waits for its thread.
const END_WITHIN: Duration = Duration::from_secs(3);

/// Interval at which a thread that hasn't ended is interrupted.
const INTERRUPTED_AFTER: Duration = Duration::from_millis(100);

// === impl HatchThread ===

impl HatchThread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system's error when no more threads or descriptors are available.
    pub fn start() -> io::Result<Self> {
        Ok(Self { proxy: Proxy::start()? })
    }

    /// Returns the proxy that serves sockets on this thread.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Ends what is served. Returns false if the thread didn't end within [`END_WITHIN`]: then records may be missing.
    pub fn end(&self, serving: &ServedRun) -> bool {
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

/// Waits for an end, and interrupts the thread at intervals.
fn insist(thread: Pid, mut has_ended_within: impl FnMut(Duration) -> bool) -> bool {
    let given_up = Instant::now() + END_WITHIN;
    while !has_ended_within(INTERRUPTED_AFTER) {
        if Instant::now() >= given_up {
            return false;
        }
        // The thread may have ended in between.
        let _ = passed_descriptors::interrupt(thread);
    }
    true
}
