//! What one run may have of models, and what it has had.

use super::budget::Budget;
use super::ledger::Ledger;
use super::models::Models;
use super::pace::Pace;
use super::room::Room;
use crate::http1::limits::Times;
use crate::identity::Identity;
use crate::upstream::Pool;
use std::rc::Rc;
use std::sync::Arc;

/// A run, as its proxy knows it. Which run calls is known by the socket that the call comes in by.
pub struct Run {
    /// Who it is for those who bill it.
    pub identity: Identity,
    /// The models that it may use.
    pub models: Models,
    /// How much of them.
    pub budget: Budget,
    /// How long anything is waited for.
    pub times: Times,
    /// Whether what is said in calls is written down, too.
    pub keeps_bodies: bool,
    /// Where its calls are written down.
    pub ledger: Arc<dyn Ledger>,
}

/// What all connections of a run share.
pub(crate) struct Served {
    pub(crate) run: Arc<Run>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) room: Room,
    pub(crate) pace: Pace,
}
