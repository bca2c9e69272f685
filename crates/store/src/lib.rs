//! What is kept for good: jobs and what becomes of them, and what agents are lent and leave, in a database; and the audit: what
//! was done on whose behalf, in a form that shows every change.

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
