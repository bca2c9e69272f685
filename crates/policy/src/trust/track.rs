//! One level, and what has been done for it.

use super::jobs::JobRules;
use super::level::NewLevel;
use super::record::Record;
use belljar_contract::trust::TrustLevel;
use jiff::{SignedDuration, Timestamp};

/// The level of one category, or of all, and the record that it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Track {
    level: TrustLevel,
    changed_at: Timestamp,
    /// What has been done.
    pub(super) record: Record,
}

/// Clocks of events have no finer times.
const MOMENT: SignedDuration = SignedDuration::from_millis(1);

// === impl Track ===

impl Track {
    /// One that begins with that level.
    pub(super) fn begin(level: &NewLevel, at: Timestamp) -> Self {
        Self { level: level.get(), changed_at: at, record: Record::begun(at) }
    }

    /// Takes another level, and says what it was. Whoever is lowered begins anew.
    pub(super) fn take(&mut self, level: &NewLevel, at: Timestamp) -> TrustLevel {
        let old = self.level;
        self.level = level.get();
        self.changed_at = at;
        if self.level < old {
            self.record = self.record.begun_anew(at);
        }
        old
    }

    /// Keeps the level, and begins anew as somebody does who was told no.
    pub(super) fn begin_after_denial(&mut self, at: Timestamp) {
        self.changed_at = at;
        self.record = self.record.begun_after_denial(at);
    }

    pub(super) fn level(&self) -> TrustLevel {
        self.level
    }

    /// From when on it may get another level: after it has had this one for some time, however short, and where a part of its record is
    /// jobs, for as long as their rules say.
    pub(super) fn settled_from(&self, rules: &JobRules) -> Option<Timestamp> {
        let least = if self.record.has_jobs() { rules.time_at_level().max(MOMENT) } else { MOMENT };
        self.changed_at.checked_add(least).ok()
    }
}
