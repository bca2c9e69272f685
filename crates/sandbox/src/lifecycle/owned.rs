//! A sandbox that is kept for an owner, and when its time is over.

use super::kept::Kept;
use crate::config::LifecycleConfig;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the strategies differ in, and their times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// How long a released sandbox is kept; not at all, if this is nothing.
    pub(super) grace_period: Option<Duration>,
    pub(super) check_interval: Duration,
    pub(super) max_idle: Option<Duration>,
}

/// A sandbox that is kept for an owner.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) number: u64,
    pub(super) kept: Arc<Kept>,
    pub(super) uses: usize,
    pub(super) last_used_at: Instant,
    pub(super) checked_at: Instant,
    /// Whether it could not be asked the last time.
    pub(super) is_in_doubt: bool,
    pub(super) grace_until: Option<Instant>,
}

// === impl Rules ===

impl Rules {
    pub(super) fn of(config: &LifecycleConfig) -> Self {
        let LifecycleConfig { health_check_interval: check_interval, max_idle, .. } = *config;
        Self { grace_period: None, check_interval, max_idle }
    }
}

// === impl Owned ===

impl Owned {
    pub(super) fn new(number: u64, kept: Arc<Kept>, now: Instant, grace_until: Option<Instant>) -> Self {
        Self { number, kept, uses: 0, last_used_at: now, checked_at: now, is_in_doubt: false, grace_until }
    }

    pub(super) fn resume(&mut self, now: Instant) -> (u64, Arc<Kept>) {
        self.grace_until = None;
        self.last_used_at = now;
        (self.number, Arc::clone(&self.kept))
    }

    fn idle_at(&self, rules: &Rules) -> Option<Instant> {
        rules.max_idle.filter(|_| self.uses == 0).and_then(|idle| self.last_used_at.checked_add(idle))
    }

    pub(super) fn is_over(&self, now: Instant, rules: &Rules) -> bool {
        let ends = [self.grace_until, self.idle_at(rules)];
        ends.into_iter().flatten().any(|at| at <= now)
    }

    pub(super) fn is_check_due(&self, now: Instant, interval: Duration) -> bool {
        now.saturating_duration_since(self.checked_at) >= interval
    }

    /// When something is to be done about it.
    pub(super) fn due_at(&self, rules: &Rules) -> Option<Instant> {
        let check_at = self.checked_at.checked_add(rules.check_interval);
        [self.grace_until, self.idle_at(rules), check_at].into_iter().flatten().min()
    }
}
