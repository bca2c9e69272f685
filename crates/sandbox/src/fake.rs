//! The fake backend: it seals nothing. It is for tests of the layers above backends, and part of the product so that others
//! can test with it, too.
//!
//! Programs run as the host's own processes, with the host's files and network, in directories made for them. Failures that
//! are rare in a real backend happen here on demand ([`faults::FaultScript`]). It fails to make a sandbox, to start a program,
//! or to clear away; it is slow; it runs out of memory. And it records the calls that it received.
//!
//! Processes are recognised by a variable in their environment: a program that removes it is lost to the sandbox. Programs
//! of tests don't.

mod backend;
mod execution;
pub mod faults;
mod sandbox;
#[cfg(test)]
mod tests;

pub use backend::{FakeBackend, FakeNotRequestedError};

/// Warning that a program with this backend has to show its user.
pub const WARNING: &str = "the fake backend seals nothing: programs run on the host as they are";
