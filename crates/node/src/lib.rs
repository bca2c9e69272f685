//! The node: a daemon that accepts jobs and sessions by the Worker API, and runs them in sandboxes.

#![forbid(unsafe_code)]

mod access_rules;
pub mod api;
pub mod approvals;
mod canary;
pub mod daemon;
pub mod delivery;
mod denials;
mod images;
mod job;
mod machine;
mod managed;
mod metrics;
pub mod models;
mod session;
pub mod tools;
mod traces;
mod trust;
pub mod web;

pub use belljar_contract::text::with_causes as chain;
pub use images::ImageSettings;
pub use managed::{ManagedService, ManagedSettings};
pub use traces::TraceSettings;
