//! How much one run may have written into the audit log: its records are paced by their size, end at a quota, and stand as one where
//! they repeat each other.
//!
//! Each record costs the host's disk, for as long as the log is kept. So a run has a burst of bytes, then so many a second: whatever
//! would be recorded waits. Beyond the quota nothing is let through (`audit_quota`). Denials cost a sandbox nothing; so those that
//! repeat the one before, and all that come beyond the quota, are counted and recorded as one ([`FoldedRecords`]). None is lost.

mod folding;

pub(crate) use folding::Folding;

use belljar_contract::audit::FoldedRecords;
use belljar_contract::id::RunId;
use belljar_contract::yaml::{Log, Members, Node, size};
use jiff::Timestamp;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLimits {
    /// Bytes of records in all. Beyond it nothing is let through.
    pub bytes: u64,
    /// Bytes of records that may come at once.
    pub burst_bytes: u64,
    /// Bytes of records each second, once a burst is used up.
    pub bytes_per_second: u64,
}

/// What one run has had of it.
#[derive(Debug)]
pub(crate) struct AuditQuota {
    limits: AuditLimits,
    state: Mutex<State>,
}

/// What becomes of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    /// Records that were counted before it and are written in front of it.
    pub(crate) folded: Option<FoldedRecords>,
    /// Whether it is written itself, or was counted.
    pub(crate) is_whole: bool,
}

#[derive(Debug, Default)]
struct State {
    bytes: u64,
    /// When the next record would be due, if all of them came evenly.
    due: Option<Instant>,
    folding: Folding,
}

/// What the log adds to a record: its number, its time, its run and three digests.
const FRAME_BYTES: u64 = 360;

// === impl AuditLimits ===

impl AuditLimits {
    /// Those that hold where nothing is said: 512 MiB, 32 MiB of them at once, then 32 KiB (some twenty requests) a second.
    pub const USUAL: Self = Self { bytes: 512 << 20, burst_bytes: 32 << 20, bytes_per_second: 32 << 10 };
}

impl AuditLimits {
    /// Reads `audit_bytes` and `audit_bytes_per_second` of a section.
    pub(crate) fn read(members: &mut Members<'_, '_>) -> Self {
        let bytes = |node: &Node, log: &mut Log| size(node, log, 1 << 20);
        let per_second = |node: &Node, log: &mut Log| size(node, log, 1 << 10);
        Self {
            bytes: members.or("audit_bytes", Self::USUAL.bytes, bytes),
            bytes_per_second: members.or("audit_bytes_per_second", Self::USUAL.bytes_per_second, per_second),
            ..Self::USUAL
        }
    }
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self::USUAL
    }
}

// === impl AuditQuota ===

impl AuditQuota {
    pub(crate) fn new(limits: AuditLimits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Whether there may be more records.
    pub(crate) fn has_left(&self) -> bool {
        self.state().bytes < self.limits.bytes
    }

    /// Waits until the records so far are within the pace.
    pub(crate) async fn wait(&self) {
        let due = self.state().due;
        if let Some(due) = due.filter(|due| *due > Instant::now()) {
            tokio::time::sleep_until(due.into()).await;
        }
    }

    /// Counts a record that is written.
    pub(crate) fn count(&self, record: &impl Serialize) {
        self.state().count(&self.limits, size_of(record), Instant::now());
    }

    /// Enters a record. `key` is what a denial has in common with those that repeat it; nothing for what is no denial, which is always
    /// written.
    pub(crate) fn enter(
        &self,
        run_id: &RunId,
        (record, id): (&impl Serialize, &str),
        (key, at): (Option<String>, Timestamp),
    ) -> Entered {
        let mut state = self.state();
        let is_beyond = state.bytes >= self.limits.bytes;
        let entered = match key {
            Some(key) => state.folding.take(run_id, (key, id), (at, is_beyond)),
            None => Entered { folded: state.folding.flush(run_id), is_whole: true },
        };
        let now = Instant::now();
        if let Some(folded) = &entered.folded {
            state.count(&self.limits, size_of(folded), now);
        }
        if entered.is_whole {
            state.count(&self.limits, size_of(record), now);
        }
        entered
    }

    /// Gives what was counted and isn't written yet.
    pub(crate) fn flush(&self, run_id: &RunId) -> Option<FoldedRecords> {
        self.state().folding.flush(run_id)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there is ever half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn count(&mut self, limits: &AuditLimits, bytes: u64, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes);
        let takes =
            |bytes: u64| Duration::from_secs_f64(bytes as f64 / limits.bytes_per_second.max(1) as f64);
        let earliest = now.checked_sub(takes(limits.burst_bytes)).unwrap_or(now);
        let due = self.due.map_or(earliest, |due| due.max(earliest));
        self.due = due.checked_add(takes(bytes)).or(Some(due));
    }
}

/// How long a record is in the log.
fn size_of(record: &impl Serialize) -> u64 {
    let length = serde_json::to_vec(record).map_or(0, |bytes| bytes.len());
    FRAME_BYTES.saturating_add(length as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const LIMITS: AuditLimits = AuditLimits { bytes: 10_000, burst_bytes: 1_000, bytes_per_second: 1_000 };

    fn run_id() -> RunId {
        RunId::from_uuid(Uuid::from_u128(7))
    }

    #[test]
    fn records_are_paced_by_their_size_once_a_burst_is_used_up() {
        let (mut state, now) = (State::default(), Instant::now() + Duration::from_secs(60));
        state.count(&LIMITS, 600, now);
        assert!(state.due.unwrap() < now);
        state.count(&LIMITS, 400, now);
        assert_eq!(state.due.unwrap(), now);
        state.count(&LIMITS, 2_000, now);
        assert_eq!(state.due.unwrap(), now + Duration::from_secs(2));
        // Silence earns a burst, and no more.
        let later = now + Duration::from_secs(3_600);
        state.count(&LIMITS, 1_000, later);
        assert_eq!(state.due.unwrap(), later);
    }

    #[test]
    fn nothing_is_left_beyond_the_quota_and_denials_there_stand_as_one() {
        let quota = AuditQuota::new(LIMITS);
        let (run, at) = (run_id(), Timestamp::UNIX_EPOCH);
        let mut whole = 0;
        while quota.has_left() {
            assert!(quota.enter(&run, (&"a", "id"), (None, at)).is_whole);
            whole += 1;
        }
        assert_eq!(whole, 10_000_u64.div_ceil(FRAME_BYTES + 3));
        let entered: Vec<_> =
            (0..500).map(|n| quota.enter(&run, (&"a", "id"), (Some(n.to_string()), at))).collect();
        assert_eq!(entered.iter().filter(|entered| entered.is_whole).count(), 1, "the first says why");
        let folded: u64 = entered.iter().filter_map(|entered| entered.folded.as_ref()).map(|f| f.count).sum();
        let left = quota.flush(&run).map_or(0, |folded| folded.count);
        assert_eq!(folded + left, 499);
        assert_eq!(quota.flush(&run), None);
    }
}
