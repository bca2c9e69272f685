//! The tools of the host, by namespace.

pub mod api;
pub mod artifact;
pub mod chart;
pub mod configured;
pub mod execution;
pub mod files;
pub mod git;
pub mod help;
pub mod memory;
pub mod message;
mod metrics;
pub mod preference;
pub mod skills;
pub mod sql;
pub mod web;
pub mod writer;

use belljar_contract::tool::InvalidToolNameError;
use std::sync::Arc;

/// Tools; an error only if a name is invalid, which can't happen for the host's own.
pub type Tools = Result<Vec<Arc<dyn crate::Tool>>, InvalidToolNameError>;

/// Returns the time of day.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;
