//! Runs a job inside the sandbox.
#![forbid(unsafe_code)]

pub mod patch;
