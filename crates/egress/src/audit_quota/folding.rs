//! Folds denials that repeat the one before.

use super::AuditEntryResult;
use belljar_contract::audit::{FoldReason, FoldedRecords};
use belljar_contract::id::RunId;
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// Latest denial, and the number of its repetitions.
#[derive(Debug, Default)]
pub(crate) struct DenialFolding(Option<RepeatedDenial>);

#[derive(Debug)]
struct RepeatedDenial {
    key: String,
    is_beyond: bool,
    /// Id of the latest denial that was written as a record.
    like: String,
    /// Number of equal denials that were written as records.
    whole: u32,
    count: u64,
    first_at: Timestamp,
    last_at: Timestamp,
    /// Time since which there are unwritten denials.
    since: Instant,
    /// Beyond the quota: count at which the next record is written.
    written_at: u64,
}

/// Number of equal denials in a row that are written before further ones are counted; the same as a run's burst of refusals.
const WHOLE: u32 = 1_000;

/// Maximum time and number after which counted denials are written. A crash loses no more than these.
const LONGEST: Duration = Duration::from_secs(10);
const MOST: u64 = 10_000;

/// Beyond the quota: number of denials in the first record. The number doubles with each further record.
const FIRST_BEYOND: u64 = 100;

// === impl DenialFolding ===

impl DenialFolding {
    /// Takes a denial, which is written or counted. Beyond the quota all denials count as equal.
    pub(super) fn take(
        &mut self,
        run_id: &RunId,
        (key, id): (String, &str),
        (at, is_beyond): (Timestamp, bool),
    ) -> AuditEntryResult {
        if let Some(last) = &mut self.0
            && last.is_beyond == is_beyond
            && (is_beyond || last.key == key)
        {
            let whole = if is_beyond { 1 } else { WHOLE };
            if last.whole < whole {
                last.whole += 1;
                id.clone_into(&mut last.like);
                return AuditEntryResult { folded: None, is_whole: true };
            }
            last.count_one(at);
            return AuditEntryResult { folded: last.flush_if_due(run_id), is_whole: false };
        }
        let folded = self.flush(run_id);
        let like = id.to_owned();
        self.0 = Some(RepeatedDenial {
            key,
            is_beyond,
            like,
            whole: 1,
            count: 0,
            first_at: at,
            last_at: at,
            since: Instant::now(),
            written_at: FIRST_BEYOND,
        });
        AuditEntryResult { folded, is_whole: true }
    }

    /// Takes the record of what was counted since the last one.
    pub(super) fn flush(&mut self, run_id: &RunId) -> Option<FoldedRecords> {
        self.0.as_mut()?.flush(run_id)
    }
}

// === impl RepeatedDenial ===

impl RepeatedDenial {
    fn count_one(&mut self, at: Timestamp) {
        if self.count == 0 {
            (self.first_at, self.since) = (at, Instant::now());
        }
        self.count += 1;
        self.last_at = at;
    }

    /// Beyond the quota the number of records grows with the logarithm of the number of denials.
    fn flush_if_due(&mut self, run_id: &RunId) -> Option<FoldedRecords> {
        let is_due = match self.is_beyond {
            true => self.count >= self.written_at,
            false => self.count >= MOST || self.since.elapsed() >= LONGEST,
        };
        if !is_due {
            return None;
        }
        self.written_at = self.written_at.saturating_mul(2);
        self.flush(run_id)
    }

    fn flush(&mut self, run_id: &RunId) -> Option<FoldedRecords> {
        let count = std::mem::take(&mut self.count);
        (count > 0).then(|| FoldedRecords {
            run_id: run_id.clone(),
            why: if self.is_beyond { FoldReason::AuditQuota } else { FoldReason::Repeated },
            like: self.like.clone(),
            count,
            first_at: self.first_at,
            last_at: self.last_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn repeated_denials_are_folded_and_written_before_the_next_different_one() {
        let (mut folding, run) = (DenialFolding::default(), RunId::from_uuid(Uuid::from_u128(7)));
        let at = Timestamp::UNIX_EPOCH;
        let mut take = |key: &str, id: &str| folding.take(&run, (key.to_owned(), id), (at, false));
        let all: Vec<_> = (0..WHOLE + 10).map(|n| take("a", &n.to_string())).collect();
        assert_eq!(all.iter().filter(|entered| entered.is_whole).count(), WHOLE as usize);
        assert!(all.iter().all(|entered| entered.folded.is_none()));
        let other = take("b", "other");
        let folded = other.folded.unwrap();
        assert_eq!((folded.count, folded.like.as_str(), folded.why), (10, "999", FoldReason::Repeated));
        assert!(other.is_whole);
        // Control: different denials are all written.
        assert!((0..100).all(|n| take(&n.to_string(), "x").is_whole));
    }
}
