//! The thread of one anchor. It delays no writer: it delivers the latest head of the log, and skips those in between.

use super::AnchorError;
use super::delivery::AnchorDelivery;
use crate::audit::chain::Position;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread of one anchor.
#[derive(Debug)]
pub(super) struct AnchorThread {
    shared: Arc<AnchorShared>,
}

#[derive(Debug)]
struct AnchorShared {
    state: Mutex<AnchorState>,
    changed: Condvar,
}

#[derive(Debug)]
struct AnchorState {
    /// End of the log.
    at: Position,
    /// Sequence number up to which the anchor has it.
    delivered: u64,
    is_closing: bool,
    is_done: bool,
}

/// Schedule of deliveries.
struct DeliverySchedule {
    last: Instant,
    /// Failed deliveries in a row.
    failures: u32,
}

/// Maximum time that an ending process waits for its anchors.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

// === impl AnchorThread ===

impl AnchorThread {
    pub(super) fn start(delivery: AnchorDelivery, at: Position) -> io::Result<Self> {
        let delivered = delivery.delivered_to(at);
        let state = AnchorState { at, delivered, is_closing: false, is_done: false };
        let shared = Arc::new(AnchorShared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("audit-anchor".to_owned());
        thread.spawn(move || theirs.deliver_until_closed(delivery))?;
        Ok(Self { shared })
    }

    pub(super) fn reach(&self, at: Position) {
        self.shared.lock().at = at;
        self.shared.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
    }

    /// Waits for the last delivery. A thread that hangs in it is left to the end of the process.
    pub(super) fn wait(self) {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, FINISH_TIMEOUT, |state| !state.is_done);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

// === impl AnchorShared ===

impl AnchorShared {
    fn deliver_until_closed(&self, mut delivery: AnchorDelivery) {
        let _end = AnchorThreadGuard(self);
        let mut pace = DeliverySchedule { last: Instant::now(), failures: 0 };
        loop {
            let (work, is_closing) = self.next(&delivery, &pace);
            if let Some(at) = work {
                // A panic of the S3 client must not end the thread silently.
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| delivery.deliver(at)));
                match outcome {
                    Ok(Ok(())) => {
                        self.lock().delivered = at.sequence;
                        pace = DeliverySchedule { last: Instant::now(), failures: 0 };
                    }
                    Ok(Err(_)) => pace.fail(),
                    Err(_) => {
                        let (target, after) = (delivery.target(), Duration::ZERO);
                        delivery.note_failure(&AnchorError::TimedOut { target, after }, at);
                        pace.fail();
                    }
                }
            }
            if is_closing {
                return;
            }
        }
    }

    /// Waits until something is to be delivered; also returns whether it is the last thing.
    fn next(&self, delivery: &AnchorDelivery, pace: &DeliverySchedule) -> (Option<Position>, bool) {
        let mut state = self.lock();
        loop {
            let pending = state.at.sequence.saturating_sub(state.delivered);
            if state.is_closing {
                return ((pending > 0).then_some(state.at), true);
            }
            if pending == 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = pace.due_in(delivery, pending);
            if left.is_zero() {
                return (Some(state.at), false);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, AnchorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the thread as ended when it ends, for whatever reason, so that no caller waits for it.
struct AnchorThreadGuard<'a>(&'a AnchorShared);

impl Drop for AnchorThreadGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.changed.notify_all();
    }
}

// === impl DeliverySchedule ===

impl DeliverySchedule {
    fn fail(&mut self) {
        *self = Self { last: Instant::now(), failures: self.failures + 1 };
    }

    fn due_in(&self, delivery: &AnchorDelivery, pending: u64) -> Duration {
        let settings = delivery.settings();
        let after = match self.failures {
            0 if pending >= settings.every_records => Duration::ZERO,
            0 => settings.every,
            failures => Duration::from_secs(1 << failures.min(6)).min(LONGEST_BACKOFF),
        };
        after.saturating_sub(self.last.elapsed())
    }
}
