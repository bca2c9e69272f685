//! How far an agent's tools reach: what each level allows, and what is said of an agent besides (`spec/3 §Tool Access Levels`).
//!
//! ```text
//! levels ─┐                    ┌─► permission: which tools
//! agent ──┼─► Constraints ─────┼─► constraint: what of their calls
//! trust ──┘                    └─► compiled: what their sandboxes have, so that it holds for whatever runs there, too
//! ```

pub mod commands;
pub mod compiled;
mod constraints;
mod levels;
mod place;
pub mod rules;
mod unknown;

pub use constraints::{ConstraintOverrides, Constraints};
pub use levels::{LevelRules, Levels};
pub use place::{InvalidPlaceError, NetworkPlace};
pub use rules::{AccessRules, AgentStanding, Earned};
pub use unknown::UnknownAgentError;
