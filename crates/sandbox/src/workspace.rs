//! Workspaces that are copies: what changed in them, shown, applied to their source, undone, and carried to another.

mod acl;
pub mod apply;
pub mod baseline;
mod carried;
pub mod changes;
pub(crate) mod copy;
pub mod diff;
pub mod digest;
mod directories;
pub mod drift;
pub mod duplicate;
mod expected;
mod extents;
pub mod frozen;
pub mod growth;
pub mod handoff;
pub mod held;
pub mod imprint;
mod mapped;
mod merge;
mod names;
pub mod opened;
pub(crate) mod owned;
pub mod partial;
mod references;
mod since;
pub mod snapshot;
mod touched;
pub(crate) mod transfer;
pub mod undo;

/// Name, in the run's folder, of a copy that shares nothing with its source; [`changes::ChangeSet::read_copy`] returns its
/// changes.
pub const COPY: &str = "workspace";
