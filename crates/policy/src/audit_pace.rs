//! Limits on what one run may write to the audit log, and its usage.
//!
//! A run has a burst of bytes of records, then a rate per second, up to a quota.

use std::time::Duration;

/// Limits on audit records of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLimits {
    /// Quota of records in bytes. Beyond it nothing is allowed.
    pub bytes: u64,
    /// Burst of records in bytes.
    pub burst_bytes: u64,
    /// Rate of records in bytes per second, once the burst is used up.
    pub bytes_per_second: u64,
}

/// Audit usage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditUse {
    bytes: u64,
    /// Time at which the next record would be due if all were evenly spaced, without a burst.
    due: Duration,
}

/// Bytes that the log adds to a record: its number, its time, its run and three digests.
pub const FRAME_BYTES: u64 = 360;

// === impl AuditLimits ===

impl AuditLimits {
    /// Default limits: 512 MiB in all, a burst of 32 MiB, then 32 KiB (some twenty requests) per second.
    pub const USUAL: Self = Self { bytes: 512 << 20, burst_bytes: 32 << 20, bytes_per_second: 32 << 10 };

    /// Returns the time that these bytes take at the limited rate.
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
    /// Returns true if the quota is not used up.
    pub fn has_left(&self, limits: &AuditLimits) -> bool {
        self.bytes < limits.bytes
    }

    /// Returns the time that the next record has to wait. `now` counts from the beginning of the run, or from any time before
    /// it.
    pub fn pause(&self, limits: &AuditLimits, now: Duration) -> Duration {
        self.due.saturating_sub(limits.takes(limits.burst_bytes)).saturating_sub(now)
    }

    /// Counts records of that size in the log.
    pub fn count(&mut self, limits: &AuditLimits, bytes: u64, now: Duration) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.due = self.due.max(now).saturating_add(limits.takes(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_byte_quota_is_consumed_and_idle_time_earns_at_most_a_burst() {
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
