//! Durable storage. A database holds jobs and their outcomes, and what agents are given and leave behind. The audit log
//! records on whose behalf each action was performed, and makes every later change detectable.

#![forbid(unsafe_code)]

pub mod approvals;
pub mod artifacts;
pub mod audit;
pub mod database;
pub mod edit;
pub mod grants;
pub mod images;
pub mod jobs;
pub mod memory;
pub mod page;
pub mod preferences;
pub mod settings;
pub mod skills;
pub mod task_artifacts;
pub mod telemetry;
pub mod tokens;
pub mod trust;

mod digest;
mod random;
