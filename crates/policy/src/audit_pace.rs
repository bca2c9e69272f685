//! How much one run may have written into the audit log, and what it has had of that.
//!
//! A run has a burst of bytes of records, then so many a second, up to a quota.

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

/// What a run has had of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditUse {
    bytes: u64,
    /// When the next record would be due, if all of them came evenly.
    due: Option<Instant>,
}

/// What the log adds to a record: its number, its time, its run and three digests.
pub const FRAME_BYTES: u64 = 360;

// === impl AuditLimits ===

impl AuditLimits {
    /// Those that hold where nothing is said: 512 MiB, 32 MiB of them at once, then 32 KiB (some twenty requests) a second.
    pub const USUAL: Self = Self { bytes: 512 << 20, burst_bytes: 32 << 20, bytes_per_second: 32 << 10 };
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

    /// When the records so far are within the pace; nothing before the first.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds records of so many bytes, as they stand in the log.
    pub fn count(&mut self, limits: &AuditLimits, bytes: u64, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes);
        let takes =
            |bytes: u64| Duration::from_secs_f64(bytes as f64 / limits.bytes_per_second.max(1) as f64);
        let earliest = now.checked_sub(takes(limits.burst_bytes)).unwrap_or(now);
        let due = self.due.map_or(earliest, |due| due.max(earliest));
        self.due = due.checked_add(takes(bytes)).or(Some(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_paced_by_their_size_once_a_burst_is_used_up() {
        let limits = AuditLimits { bytes: 10_000, burst_bytes: 1_000, bytes_per_second: 1_000 };
        let (mut spent, now) = (AuditUse::default(), Instant::now() + Duration::from_secs(60));
        spent.count(&limits, 600, now);
        assert!(spent.due().unwrap() < now);
        spent.count(&limits, 400, now);
        assert_eq!(spent.due().unwrap(), now);
        spent.count(&limits, 2_000, now);
        assert_eq!(spent.due().unwrap(), now + Duration::from_secs(2));
        // Silence earns a burst, and no more.
        let later = now + Duration::from_secs(3_600);
        spent.count(&limits, 1_000, later);
        assert_eq!(spent.due().unwrap(), later);
        assert!(spent.has_left(&limits));
        spent.count(&limits, 6_000, later);
        assert!(!spent.has_left(&limits));
    }
}
