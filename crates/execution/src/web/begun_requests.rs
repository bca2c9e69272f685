//! Tracks requests that have begun: a rule has allowed them, and that was to be recorded.
//!
//! An intercepted tunnel never begins itself; the requests in it do.

use belljar_contract::egress::{ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord};
use belljar_contract::id::PassageId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Requests that are under way.
#[derive(Debug, Default)]
pub struct RequestsInProgress(Mutex<HashSet<PassageId>>);

/// Verdict about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A rule has allowed it, whatever its result.
    LetThrough,
    /// No rule has allowed it, or it could not be parsed.
    Denied,
    /// Neither: an intercepted tunnel, whose requests are recorded separately, or which had none.
    Enclosing,
}

// === impl RequestsInProgress ===

impl RequestsInProgress {
    /// Adds a request that has begun.
    pub fn begin(&self, record: &ProxiedRequestStartRecord) {
        self.locked().insert(record.passage_id.clone());
    }

    /// Returns the verdict about a request that is over.
    pub fn end(&self, record: &ProxiedRequestRecord) -> Verdict {
        let has_begun = self.locked().remove(&record.passage_id);
        match record.outcome {
            ProxiedRequestOutcome::Denied { .. } => Verdict::Denied,
            // Calls by a connection have no rule.
            _ if record.rule.is_none() && record.connection.is_none() => Verdict::Denied,
            _ if has_begun => Verdict::LetThrough,
            _ => Verdict::Enclosing,
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<PassageId>> {
        // Ignores poisoning: each change is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
