//! What is kept for good: jobs and what becomes of them, in a database; and the audit: what was done on whose behalf, in a
//! form that shows every change.

#![forbid(unsafe_code)]

pub mod artifacts;
pub mod audit;
pub mod database;
pub mod jobs;
pub mod telemetry;
