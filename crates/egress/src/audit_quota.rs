//! Limits what one run may write to the audit log: a rate limit in bytes, a quota, and folding of records that repeat each
//! other.
//!
//! Each record takes disk space of the host for the retention of the log. So a run has a burst of bytes, then a rate per
//! second; whatever would be recorded waits. Beyond the quota nothing is allowed (`audit_quota`). Denials cost a sandbox
//! nothing. So denials that repeat the one before, and all beyond the quota, are counted and recorded as one
//! ([`FoldedRecords`]). None is lost.

mod folding;

pub(crate) use folding::DenialFolding;

use belljar_contract::audit::FoldedRecords;
use belljar_contract::id::RunId;
use belljar_contract::yaml::{Members, MistakeLog, Node, size};
pub use belljar_policy::audit_pace::AuditLimits;
use belljar_policy::audit_pace::{AuditUse, FRAME_BYTES};
use belljar_policy::untrusted::escaped_length;
use jiff::Timestamp;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Audit usage of one run.
#[derive(Debug)]
pub(crate) struct AuditQuota {
    limits: AuditLimits,
    since: Instant,
    state: Mutex<AuditQuotaState>,
}

/// Result of entering a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AuditEntryResult {
    /// Counted records that are written before this one.
    pub(crate) folded: Option<FoldedRecords>,
    /// True if the record itself is written, false if it was only counted.
    pub(crate) is_whole: bool,
}

#[derive(Debug, Default)]
struct AuditQuotaState {
    spent: AuditUse,
    folding: DenialFolding,
}

/// Assumed size of a record that can't be serialized, in bytes: the maximum that the log accepts.
const LARGEST_BYTES: u64 = 256 << 10;

/// A burst is at most this fraction of the quota. Otherwise a small quota would be used up before the rate limit applied.
const BURSTS: u64 = 16;

/// Reads `audit_bytes` and `audit_bytes_per_second` of a section.
pub(crate) fn limits(members: &mut Members<'_, '_>) -> AuditLimits {
    let bytes = |node: &Node, log: &mut MistakeLog| size(node, log, 1 << 20);
    let per_second = |node: &Node, log: &mut MistakeLog| size(node, log, 1 << 10);
    let usual = AuditLimits::USUAL;
    let bytes = members.or("audit_bytes", usual.bytes, bytes);
    AuditLimits {
        bytes,
        burst_bytes: usual.burst_bytes.min(bytes / BURSTS),
        bytes_per_second: members.or("audit_bytes_per_second", usual.bytes_per_second, per_second),
    }
}

// === impl AuditQuota ===

impl AuditQuota {
    pub(crate) fn new(limits: AuditLimits) -> Self {
        Self { limits, since: Instant::now(), state: Mutex::default() }
    }

    /// Returns true if the quota is not used up.
    pub(crate) fn has_left(&self) -> bool {
        self.state().spent.has_left(&self.limits)
    }

    /// Waits until the records so far are within the rate limit.
    pub(crate) async fn wait(&self) {
        let pause = self.state().spent.pause(&self.limits, self.since.elapsed());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Counts a record that is written.
    pub(crate) fn count(&self, record: &impl Serialize) {
        self.state().spent.count(&self.limits, size_of(record), self.since.elapsed());
    }

    /// Enters a record. `key` is what a denial has in common with those that repeat it. It is `None` for other records, which
    /// are always written.
    pub(crate) fn enter(
        &self,
        run_id: &RunId,
        (record, id): (&impl Serialize, &str),
        (key, at): (Option<String>, Timestamp),
    ) -> AuditEntryResult {
        let mut state = self.state();
        let is_beyond = !state.spent.has_left(&self.limits);
        let entered = match key {
            Some(key) => state.folding.take(run_id, (key, id), (at, is_beyond)),
            None => AuditEntryResult { folded: state.folding.flush(run_id), is_whole: true },
        };
        let now = self.since.elapsed();
        if let Some(folded) = &entered.folded {
            state.spent.count(&self.limits, size_of(folded), now);
        }
        if entered.is_whole {
            state.spent.count(&self.limits, size_of(record), now);
        }
        entered
    }

    /// Takes the record of what was counted and is not yet written.
    pub(crate) fn flush(&self, run_id: &RunId) -> Option<FoldedRecords> {
        self.state().folding.flush(run_id)
    }

    fn state(&self) -> MutexGuard<'_, AuditQuotaState> {
        // No panic can leave the value half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of a record in the log, where hidden characters are escaped, in bytes.
fn size_of(record: &impl Serialize) -> u64 {
    let length = serde_json::to_string(record).map(|text| escaped_length(&text) as u64);
    FRAME_BYTES.saturating_add(length.unwrap_or(LARGEST_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use uuid::Uuid;

    const LIMITS: AuditLimits = AuditLimits { bytes: 10_000, burst_bytes: 1_000, bytes_per_second: 1_000 };

    fn run_id() -> RunId {
        RunId::from_uuid(Uuid::from_u128(7))
    }

    #[test]
    fn audit_records_are_throttled_by_size_after_the_burst() {
        let (mut spent, now) = (AuditUse::default(), Duration::from_secs(60));
        spent.count(&LIMITS, 600, now);
        spent.count(&LIMITS, 400, now);
        assert_eq!(spent.pause(&LIMITS, now), Duration::ZERO);
        spent.count(&LIMITS, 2_000, now);
        assert_eq!(spent.pause(&LIMITS, now), Duration::from_secs(2));
        // Silence earns at most one burst.
        let later = now + Duration::from_secs(3_600);
        spent.count(&LIMITS, 1_000, later);
        assert_eq!(spent.pause(&LIMITS, later), Duration::ZERO);
        spent.count(&LIMITS, 1_000, later);
        assert_eq!(spent.pause(&LIMITS, later), Duration::from_secs(1));
    }

    #[test]
    fn audit_quota_counts_the_escaped_size_of_a_record() {
        let plain = size_of(&"a".repeat(100));
        assert_eq!(plain, FRAME_BYTES + 102);
        assert_eq!(size_of(&"\u{e0041}".repeat(100)), FRAME_BYTES + 2 + 1_200);
    }

    #[test]
    fn denials_beyond_the_audit_quota_are_folded_into_one_record() {
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
