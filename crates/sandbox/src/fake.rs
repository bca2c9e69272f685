//! The fake backend: it seals nothing. It is for tests of what stands above backends, and part of the product so that
//! others can test with it, too.
//!
//! Programs run as the host's own processes, with the host's files and network, in directories made for them. What a
//! real backend does wrong seldom, this one does on demand ([`faults::Script`]): it fails to make a sandbox, to start a
//! program, to clear away; it is slow; it runs out of memory. And it tells what it was asked to do.
//!
//! Processes are told by a variable that each of them has got: whoever takes it out of its environment is lost to the
//! sandbox. Programs of tests don't.

mod backend;
mod execution;
pub mod faults;
mod sandbox;
#[cfg(test)]
mod tests;

pub use backend::{FakeBackend, NotAskedFor};

/// What whoever uses this backend has to tell its user.
pub const WARNING: &str = "the fake backend seals nothing: programs run on the host as they are";
