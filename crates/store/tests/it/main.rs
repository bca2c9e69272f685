//! The audit log, on real files; jobs, in real databases.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod anchored;
mod approvals;
mod artifacts;
mod crash;
mod disk;
mod exported;
mod forger;
mod jobs;
mod log;
mod memory;
mod preferences;
mod settings;
mod simulation;
mod skills;
mod tampering;
mod task_artifacts;
mod telemetry;
mod text;
mod tokens;
mod torn;
mod trust;
