//! Level of a category with its record.

use super::jobs::JobRules;
use super::level::NewLevel;
use super::record::Record;
use belljar_contract::trust::TrustLevel;
use jiff::{SignedDuration, Timestamp};

/// Level of one category, or of all, with the record that it is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Track {
    level: TrustLevel,
    changed_at: Timestamp,
    /// Work at this level.
    pub(super) record: Record,
}

/// Finest resolution of event times.
const MOMENT: SignedDuration = SignedDuration::from_millis(1);

// === impl Track ===

impl Track {
    /// Creates a track that begins with that level.
    pub(super) fn begin(level: &NewLevel, at: Timestamp) -> Self {
        Self { level: level.get(), changed_at: at, record: Record::begun(at) }
    }

    /// Takes another level and returns the old one. A demotion begins a new record.
    pub(super) fn take(&mut self, level: &NewLevel, at: Timestamp) -> TrustLevel {
        let old = self.level;
        self.level = level.get();
        self.changed_at = at;
        if self.level < old {
            self.record = self.record.begun_anew(at);
        }
        old
    }

    /// Keeps the level and begins a new record after a denial.
    pub(super) fn begin_after_denial(&mut self, at: Timestamp) {
        self.changed_at = at;
        self.record = self.record.begun_after_denial(at);
    }

    pub(super) fn level(&self) -> TrustLevel {
        self.level
    }

    /// Returns the time from which it may get another level: after a minimum time at this one, and if its record includes jobs,
    /// after the time that their rules require.
    pub(super) fn settled_from(&self, rules: &JobRules) -> Option<Timestamp> {
        let least = if self.record.has_jobs() { rules.time_at_level().max(MOMENT) } else { MOMENT };
        self.changed_at.checked_add(least).ok()
    }
}
