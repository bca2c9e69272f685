//! The node: runs agents in sandboxes with their hatches, and records usage up to the bill.

#![forbid(unsafe_code)]

mod access_rules;
pub mod agent;
pub mod api;
pub mod approvals;
mod canary;
mod chain;
pub mod daemon;
pub mod delivery;
mod denials;
pub mod grant;
mod images;
mod job;
mod machine;
mod managed;
mod metrics;
pub mod models;
pub mod run_once;
pub mod serving;
mod session;
pub mod tls_interception;
pub mod tools;
mod traces;
mod trust;
pub mod usage;
pub mod web;

pub use chain::chain;
pub use images::ImageSettings;
pub use managed::{ManagedService, ManagedSettings};
pub use traces::TraceSettings;
