//! How much one run may have written into the audit log, and what it has had of that.
//!
//! A run has a burst of bytes of records, then so many a second, up to a quota.

use std::time::Duration;

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

/// What a run has had of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditUse {
    bytes: u64,
    /// When the next record would be due, if all of them came evenly and none at once.
    due: Duration,
}

/// What the log adds to a record: its number, its time, its run and three digests.
pub const FRAME_BYTES: u64 = 360;

// === impl AuditLimits ===

impl AuditLimits {
    /// Those that hold where nothing is said: 512 MiB, 32 MiB of them at once, then 32 KiB (some twenty requests) a second.
    pub const USUAL: Self = Self { bytes: 512 << 20, burst_bytes: 32 << 20, bytes_per_second: 32 << 10 };

    /// How long so many bytes take.
    fn takes(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second.max(1) as f64)
    }
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self::USUAL
    }
}

// === impl AuditUse ===

impl AuditUse {
    /// Whether there may be more records.
    pub fn has_left(&self, limits: &AuditLimits) -> bool {
        self.bytes < limits.bytes
    }

    /// How long the next record has to wait. Times are counted from when the run began, or any time before it.
    pub fn pause(&self, limits: &AuditLimits, now: Duration) -> Duration {
        self.due.saturating_sub(limits.takes(limits.burst_bytes)).saturating_sub(now)
    }

    /// Adds records of so many bytes, as they stand in the log.
    pub fn count(&mut self, limits: &AuditLimits, bytes: u64, now: Duration) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.due = self.due.max(now).saturating_add(limits.takes(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_of_bytes_is_used_up_and_silence_earns_no_more_than_a_burst() {
        let limits = AuditLimits { bytes: 10_000, burst_bytes: 1_000, bytes_per_second: 1_000 };
        let (mut spent, later) = (AuditUse::default(), Duration::from_secs(3_600));
        spent.count(&limits, 3_000, Duration::ZERO);
        assert_eq!(spent.pause(&limits, Duration::ZERO), Duration::from_secs(2));
        spent.count(&limits, 2_000, later);
        assert_eq!(spent.pause(&limits, later), Duration::from_secs(1));
        assert!(spent.has_left(&limits));
        spent.count(&limits, 5_000, later);
        assert!(!spent.has_left(&limits));
    }
}
