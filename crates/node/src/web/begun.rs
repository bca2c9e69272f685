//! Which passages have begun: a rule has let them through, and that was to be on the disk.
//!
//! A tunnel that is looked into never begins by itself: those who ask for something in it do.

use belljar_contract::egress::{PassageBegun, PassageOutcome, PassageRecord};
use belljar_contract::id::PassageId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those that are under way.
#[derive(Debug, Default)]
pub(super) struct Begun(Mutex<HashSet<PassageId>>);

/// What has become of somebody who wanted to get through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A rule has let them through, whatever became of that.
    LetThrough,
    /// None has, or what they asked for could not be read.
    Denied,
    /// Neither: what was asked in it is told by itself, or nothing could be.
    Enclosing,
}

// === impl Begun ===

impl Begun {
    pub(super) fn begin(&self, record: &PassageBegun) {
        self.locked().insert(record.passage_id.clone());
    }

    /// What it was, once it is over.
    pub(super) fn end(&self, record: &PassageRecord) -> Verdict {
        let has_begun = self.locked().remove(&record.passage_id);
        match record.outcome {
            PassageOutcome::Denied { .. } => Verdict::Denied,
            // Calls of connections are by no rule.
            _ if record.rule.is_none() && record.connection.is_none() => Verdict::Denied,
            _ if has_begun => Verdict::LetThrough,
            _ => Verdict::Enclosing,
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<PassageId>> {
        // Nothing in there is ever half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
