//! Progressive trust, as it is stored and shown: events of agents, their levels, and the changes of these levels
//! (`docs/contracts/tools.md#t17`).
//!
//! The rules are elsewhere; these types hold the results. Numbers are integer multiples of a small step, so that
//! repeated computations give equal results.

mod account;
mod change;
mod event;
mod level;
mod measure;
mod reported;
mod state;

pub use account::{AgentTrust, IgnoredEvent};
pub use change::{AgentStatistics, ChangeReason, TrustChange};
pub use event::{TrustEvent, TrustEventKind};
pub use level::{Transition, TrustLevel};
pub use measure::{MeasureError, Quality, Share};
pub use reported::ReportedEvent;
pub use state::{ProposedPromotion, TrustState};

#[cfg(test)]
mod tests;
