//! When something is decided, under which configuration, and what for.

use super::config::TrustConfig;
use belljar_contract::id::UserId;
use jiff::Timestamp;
use uuid::Uuid;

/// A time at which something is decided.
#[derive(Debug)]
pub(super) struct Moment<'c> {
    pub(super) config: &'c TrustConfig,
    pub(super) at: Timestamp,
    pub(super) cause: Cause,
}

/// What brings a change about, besides the time that passes.
#[derive(Debug, Clone, Default)]
pub(super) struct Cause {
    pub(super) event_id: Option<Uuid>,
    pub(super) approval_id: Option<Uuid>,
    /// Who said so, and why.
    pub(super) word: Option<(UserId, String)>,
}

// === impl Moment ===

impl<'c> Moment<'c> {
    /// One at which time has passed, and nothing else.
    pub(super) fn of_time(config: &'c TrustConfig, at: Timestamp) -> Self {
        Self { config, at, cause: Cause::default() }
    }
}
