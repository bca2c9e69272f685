//! Progressive trust, as it is kept and shown: what agents did, which levels they have by it, and how those came about
//! (`spec/3 §Progressive Trust`).
//!
//! What follows from what is decided elsewhere; in here is what was decided. Numbers are whole multiples of a small step, so
//! that whoever reckons with them twice gets the same twice.

mod account;
mod change;
mod event;
mod level;
mod measure;
mod reported;
mod state;

pub use account::{AgentTrust, IgnoredEvent};
pub use change::{ChangeReason, Figures, TrustChange};
pub use event::{TrustEvent, TrustEventKind};
pub use level::{Transition, TrustLevel};
pub use measure::{MeasureError, Quality, Share};
pub use reported::ReportedEvent;
pub use state::{ProposedPromotion, TrustState};

#[cfg(test)]
mod tests;
