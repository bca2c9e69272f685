//! Tool access of agents: what each level allows, and what is configured for an agent (`docs/contracts/tools.md#t16`).
//!
//! ```text
//! levels ─┐                    ┌─► permission: which tools
//! agent ──┼─► Constraints ─────┼─► constraint: limits on their calls
//! trust ──┘                    └─► compiled: terms of their sandboxes, which enforce the limits for all programs there
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
pub use place::{InvalidEndpointError, NetworkEndpoint};
pub use rules::{AccessRules, AgentAuthority, EarnedLevels};
pub use unknown::UnknownAgentError;
