//! The backends of this host, and the one that is chosen for a sandbox.
//!
//! There is no fallback to another backend: a sandbox is made by the requested backend, or not at all.

pub mod chosen;
pub mod construction;
