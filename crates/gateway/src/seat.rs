//! The place from which somebody calls: it is theirs until it is taken away, and what they call ends with it.

use belljar_policy::audit_pace::{AuditLimits, AuditUse, FRAME_BYTES};
use belljar_tools::caller::Caller;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A caller, for as long as they may call.
#[derive(Debug, Clone)]
pub struct Seat {
    caller: Arc<Caller>,
    ended: CancellationToken,
    /// Nothing where nobody counts.
    turn: Option<Arc<Turn>>,
    /// The same.
    room: Option<Arc<Semaphore>>,
}

/// How often the caller has called, and how much of that was recorded.
#[derive(Debug)]
pub(crate) struct Turn {
    unpaced: u32,
    calls: Mutex<Calls>,
    limits: AuditLimits,
    since: Instant,
    recorded: std::sync::Mutex<AuditUse>,
}

#[derive(Debug, Default)]
struct Calls {
    count: u32,
    /// Those that were refused because of the quota.
    beyond: u32,
}

/// As many requests are under way as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are under way")]
pub struct NoRoom;

/// As many calls were made from a seat that is counted as may be, or their records are as long as they may be: each has two records in
/// the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsedUp {
    /// Which call beyond those it is, from 1.
    pub(crate) beyond: u32,
}

/// So long each further call takes at least, one after the other.
const PACE: Duration = Duration::from_millis(20);
/// Behind so many calls a further one takes this long.
const SLOW_AFTER: u32 = 20_000;
const SLOW_PACE: Duration = Duration::from_millis(500);
/// Calls that are made from one seat.
const MOST_CALLS: u32 = 100_000;

// === impl Seat ===

impl Seat {
    /// A seat of that caller's. Whoever holds the token takes it away.
    pub fn new(caller: Caller, ended: CancellationToken) -> Self {
        Self { caller: Arc::new(caller), ended, turn: None, room: None }
    }

    /// The same, from which calls take their time after so many: each fills a line of the audit.
    pub fn paced_after(self, unpaced: u32) -> Self {
        Self { turn: Some(Arc::new(Turn::new(unpaced, AuditLimits::USUAL))), ..self }
    }

    /// The same, from which so many requests may be under way at once.
    pub fn with_room_for(self, most: usize) -> Self {
        Self { room: Some(Arc::new(Semaphore::new(most))), ..self }
    }

    /// Leave for a request, for as long as it is under way; nothing to be held where nobody counts.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn enter(&self) -> Result<Option<OwnedSemaphorePermit>, NoRoom> {
        let permit = self.room.as_ref().map(|room| Arc::clone(room).try_acquire_owned());
        permit.transpose().map_err(|_| NoRoom)
    }

    /// Whether nobody has a clone of it: nothing is under way, and nothing will be.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.caller) == 1
    }

    /// Who sits there.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether it has been taken away.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until it is.
    pub async fn over(&self) {
        self.ended.cancelled().await;
    }

    /// Waits until the next call may be made.
    ///
    /// # Errors
    /// [`UsedUp`] when no more may be.
    pub(crate) async fn turn(&self) -> Result<(), UsedUp> {
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
        Err(UsedUp { beyond: calls.beyond })
    }

    /// What counts the records of its calls; nothing where nobody counts.
    pub(crate) fn counter(&self) -> Option<Arc<Turn>> {
        self.turn.clone()
    }
}

// === impl Turn ===

impl Turn {
    fn new(unpaced: u32, limits: AuditLimits) -> Self {
        let recorded = std::sync::Mutex::default();
        Self { unpaced, calls: Mutex::default(), limits, since: Instant::now(), recorded }
    }

    /// Counts a record of so many bytes, without what the log adds to it.
    pub(crate) fn count_record(&self, bytes: usize) {
        let bytes = FRAME_BYTES.saturating_add(bytes as u64);
        self.recorded().count(&self.limits, bytes, self.since.elapsed());
    }

    fn recorded(&self) -> std::sync::MutexGuard<'_, AuditUse> {
        // Nothing in there is ever half done.
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
    async fn calls_take_longer_the_more_there_are_and_end_at_a_quota() {
        let seat = Seat::new(Caller::of(AgentKind::Sandbox), CancellationToken::new()).paced_after(1_000);
        let since = Instant::now();
        for _ in 0..MOST_CALLS {
            assert_eq!(seat.turn().await, Ok(()));
        }
        let least = PACE * (SLOW_AFTER - 1_000) + SLOW_PACE * (MOST_CALLS - SLOW_AFTER);
        assert!(since.elapsed() >= least, "{:?}", since.elapsed());
        assert_eq!(seat.turn().await, Err(UsedUp { beyond: 1 }));
        assert_eq!(seat.turn().await, Err(UsedUp { beyond: 2 }));
        // The control: a seat that isn't counted has no quota.
        let free = Seat::new(Caller::of(AgentKind::Sandbox), CancellationToken::new());
        for _ in 0..=MOST_CALLS {
            assert_eq!(free.turn().await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_take_longer_the_more_is_recorded_of_them_and_end_at_a_quota_of_bytes() {
        let limits = AuditLimits { bytes: 1 << 20, burst_bytes: 256 << 10, bytes_per_second: 32 << 10 };
        let large_after = |bytes: usize| async move {
            let turn = Some(Arc::new(Turn::new(1_000, limits)));
            let seat = Seat { turn, ..Seat::new(Caller::of(AgentKind::Sandbox), CancellationToken::new()) };
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
        // The control: short records.
        assert_eq!(large_after(200).await, (1_000, 9));
    }
}
