//! Workspaces that are copies: what changed in them, shown, applied to their source, undone, and carried to another.

mod acl;
pub mod apply;
pub mod baseline;
mod carried;
pub mod changes;
pub(crate) mod copy;
mod copy_time;
pub mod diff;
pub mod digest;
mod directories;
pub mod drift;
pub mod duplicate;
mod expected;
mod extents;
pub(crate) mod file_owner;
mod foreign_changes;
pub mod frozen;
pub mod growth;
pub mod handoff;
pub mod imprint;
pub mod live_workspace;
mod merge;
pub mod partial;
mod references;
pub mod relaxed_permissions;
pub mod snapshot;
mod source_names;
pub(crate) mod transfer;
pub mod undo;
mod writable_mappings;

/// Name, in the run's folder, of a copy that shares nothing with its source; [`changes::ChangeSet::read_copy`] returns its
/// changes.
pub const COPY: &str = "workspace";
