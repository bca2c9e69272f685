//! Time, configuration and cause of a decision.

use super::config::TrustConfig;
use belljar_contract::id::UserId;
use jiff::Timestamp;
use uuid::Uuid;

/// Moment of a decision.
#[derive(Debug)]
pub(super) struct Moment<'c> {
    pub(super) config: &'c TrustConfig,
    pub(super) at: Timestamp,
    pub(super) cause: Cause,
}

/// Cause of a change, besides the passing of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Cause {
    pub(super) event_id: Option<Uuid>,
    pub(super) approval_id: Option<Uuid>,
    /// User who decided, and the reason.
    pub(super) word: Option<(UserId, String)>,
}

// === impl Moment ===

impl<'c> Moment<'c> {
    /// Returns a moment at which only time has passed.
    pub(super) fn of_time(config: &'c TrustConfig, at: Timestamp) -> Self {
        Self { config, at, cause: Cause::default() }
    }
}
