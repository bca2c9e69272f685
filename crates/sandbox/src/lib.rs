//! Sandboxes for jobs: what a job gets to see, which backend builds it, and what becomes of its workspace.
//!
//! Everything that comes out of a sandbox is taken for hostile: it is opened by descriptor, without following links,
//! by type and within caps, and what is kept is what was read.

#![forbid(unsafe_code)]

pub mod archive;
pub mod artifact;
pub mod backend;
pub mod backends;
pub mod canary;
pub mod config;
pub mod correlation;
mod disk_quota;
pub mod docker;
pub mod enclosure;
pub mod event;
mod execution;
pub mod fake;
pub mod hatch;
pub mod host;
mod host_directories;
pub mod kept;
pub mod lent_paths;
pub mod limits;
pub mod native;
pub mod provision;
pub mod resumption;
pub mod run;
pub mod session;
pub mod shipping;
pub mod spec;
pub mod state;
pub mod streams;
pub mod subprocess;
pub mod supervise;
pub mod workspace;
