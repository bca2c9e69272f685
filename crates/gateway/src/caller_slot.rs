//! The slot of a caller: it is valid until it is removed, which cancels the caller's calls.

use belljar_policy::audit_pace::{AuditLimits, AuditUse, FRAME_BYTES};
use belljar_tools::caller::Caller;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A caller, for as long as it may call.
#[derive(Debug, Clone)]
pub struct CallerSlot {
    caller: Arc<Caller>,
    ended: CancellationToken,
    /// `None` if calls are not counted.
    turn: Option<Arc<CallQuota>>,
    /// `None` if concurrent requests are not limited.
    room: Option<Arc<Semaphore>>,
}

/// Number of the caller's calls, and size of their records.
#[derive(Debug)]
pub(crate) struct CallQuota {
    unpaced: u32,
    calls: Mutex<CallCounts>,
    limits: AuditLimits,
    since: Instant,
    recorded: std::sync::Mutex<AuditUse>,
}

#[derive(Debug, Default)]
struct CallCounts {
    count: u32,
    /// Number of calls that were refused because of the quota.
    beyond: u32,
}

/// The maximum number of concurrent requests is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are under way")]
pub struct TooManyRequests;

/// The quota of a slot is used up: the number of its calls, or the size of their records. Each call has two records in the audit
/// log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaExceeded {
    /// Number of refused calls so far, from 1.
    pub(crate) beyond: u32,
}

/// Minimum duration of each throttled call; they are served one after the other.
const PACE: Duration = Duration::from_millis(20);
/// Number of calls from which on each takes at least [`SLOW_PACE`].
const SLOW_AFTER: u32 = 20_000;
const SLOW_PACE: Duration = Duration::from_millis(500);
/// Maximum number of calls of one slot.
const MOST_CALLS: u32 = 100_000;

// === impl CallerSlot ===

impl CallerSlot {
    /// Returns a slot for that caller. Cancelling the token removes it.
    pub fn new(caller: Caller, ended: CancellationToken) -> Self {
        Self { caller: Arc::new(caller), ended, turn: None, room: None }
    }

    /// Throttles calls after the first `unpaced` ones: each call takes up space in the audit log.
    pub fn paced_after(self, unpaced: u32) -> Self {
        Self { turn: Some(Arc::new(CallQuota::new(unpaced, AuditLimits::USUAL))), ..self }
    }

    /// Limits the number of concurrent requests.
    pub fn with_room_for(self, most: usize) -> Self {
        Self { room: Some(Arc::new(Semaphore::new(most))), ..self }
    }

    /// Returns a permit for a request, to be held until its end; `None` if requests are not limited.
    ///
    /// # Errors
    /// [`TooManyRequests`].
    pub fn enter(&self) -> Result<Option<OwnedSemaphorePermit>, TooManyRequests> {
        let permit = self.room.as_ref().map(|room| Arc::clone(room).try_acquire_owned());
        permit.transpose().map_err(|_| TooManyRequests)
    }

    /// Returns true if there is no clone of the slot: no request is under way.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.caller) == 1
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns true if the slot was removed.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until the slot is removed.
    pub async fn over(&self) {
        self.ended.cancelled().await;
    }

    /// Waits until the next call may be made.
    ///
    /// # Errors
    /// [`QuotaExceeded`] when the quota is used up.
    pub(crate) async fn turn(&self) -> Result<(), QuotaExceeded> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let mut calls = turn.calls.lock().await;
        calls.count = calls.count.saturating_add(1);
        let of_records = turn.recorded().pause(&turn.limits, turn.since.elapsed());
        let pause = turn.pause(calls.count).max(of_records);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if calls.count <= MOST_CALLS && turn.recorded().has_left(&turn.limits) {
            return Ok(());
        }
        calls.beyond = calls.beyond.saturating_add(1);
        Err(QuotaExceeded { beyond: calls.beyond })
    }

    /// Returns the counter of its records; `None` if calls are not counted.
    pub(crate) fn counter(&self) -> Option<Arc<CallQuota>> {
        self.turn.clone()
    }
}

// === impl CallQuota ===

impl CallQuota {
    fn new(unpaced: u32, limits: AuditLimits) -> Self {
        let recorded = std::sync::Mutex::default();
        Self { unpaced, calls: Mutex::default(), limits, since: Instant::now(), recorded }
    }

    /// Counts a record of the given size, to which the log's framing is added.
    pub(crate) fn count_record(&self, bytes: usize) {
        let bytes = FRAME_BYTES.saturating_add(bytes as u64);
        self.recorded().count(&self.limits, bytes, self.since.elapsed());
    }

    fn recorded(&self) -> std::sync::MutexGuard<'_, AuditUse> {
        // Ignores poisoning: each change is complete.
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, call: u32) -> Duration {
        match call {
            _ if call <= self.unpaced => Duration::ZERO,
            ..=SLOW_AFTER => PACE,
            _ => SLOW_PACE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::tool::AgentKind;

    #[tokio::test(start_paused = true)]
    async fn calls_are_throttled_by_count_and_end_at_the_quota() {
        let seat =
            CallerSlot::new(Caller::of(AgentKind::Sandbox), CancellationToken::new()).paced_after(1_000);
        let since = Instant::now();
        for _ in 0..MOST_CALLS {
            assert_eq!(seat.turn().await, Ok(()));
        }
        let least = PACE * (SLOW_AFTER - 1_000) + SLOW_PACE * (MOST_CALLS - SLOW_AFTER);
        assert!(since.elapsed() >= least, "{:?}", since.elapsed());
        assert_eq!(seat.turn().await, Err(QuotaExceeded { beyond: 1 }));
        assert_eq!(seat.turn().await, Err(QuotaExceeded { beyond: 2 }));
        // Control: a slot without counting has no quota.
        let free = CallerSlot::new(Caller::of(AgentKind::Sandbox), CancellationToken::new());
        for _ in 0..=MOST_CALLS {
            assert_eq!(free.turn().await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_throttled_by_record_size_and_end_at_the_byte_quota() {
        let limits = AuditLimits { bytes: 1 << 20, burst_bytes: 256 << 10, bytes_per_second: 32 << 10 };
        let large_after = |bytes: usize| async move {
            let turn = Some(Arc::new(CallQuota::new(1_000, limits)));
            let seat = CallerSlot {
                turn,
                ..CallerSlot::new(Caller::of(AgentKind::Sandbox), CancellationToken::new())
            };
            let since = Instant::now();
            let mut calls = 0;
            while calls < 1_000 && seat.turn().await.is_ok() {
                seat.counter().unwrap().count_record(bytes);
                calls += 1;
            }
            (calls, since.elapsed().as_secs())
        };
        let (calls, seconds) = large_after(50_000).await;
        assert_eq!(calls, (1_usize << 20).div_ceil(50_000 + FRAME_BYTES as usize));
        assert!((20..=30).contains(&seconds), "{seconds}");
        // Control: short records.
        assert_eq!(large_after(200).await, (1_000, 9));
    }
}
