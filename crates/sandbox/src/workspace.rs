//! Workspaces that are copies: the change set that a job leaves, shown, applied or thrown away.

pub mod apply;
pub mod changes;
pub(crate) mod copy;
pub mod diff;
