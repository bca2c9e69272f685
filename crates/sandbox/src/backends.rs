//! The backends: how each is made on this host, and one that is chosen for a sandbox.
//!
//! Nothing ever falls back to another backend: a sandbox is made by the one that was asked for, or not at all.

pub mod chosen;
pub mod here;
