//! Sandboxes for jobs: what a job gets to see, which backend builds it, and what becomes of its workspace.

#![forbid(unsafe_code)]

pub mod native;
pub mod spec;
