//! What one run may have of models, and what it has had.

use super::budget::Budget;
use super::ledger::Ledger;
use super::models::Models;
use crate::identity::Identity;
use std::sync::Arc;

/// A run, as its proxy knows it. Which run calls is known by the socket that the call comes in by.
pub struct Run {
    /// Who it is for those who bill it.
    pub identity: Identity,
    /// The models that it may use.
    pub models: Models,
    /// How much of them.
    pub budget: Budget,
    /// Where its calls are written down.
    pub ledger: Arc<dyn Ledger>,
}
