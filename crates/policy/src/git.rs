//! Rules for the host's git: allowed remotes, branch names and tree paths, and the parts of its output that may be repeated.
//!
//! ```text
//! URL ─► Remote (one form) ─► GitRules::decide ─► Allowed<Destination> ─► resolved, once ─► vet ─► Allowed<Vetted> ─► git, pinned
//! ```
//! Hosts and addresses are decided about by [`crate::egress`] alone.

mod branch;
mod config;
mod forge;
mod redact;
mod remote;
mod remote_pattern;
mod rules;
mod tree_path;

pub use branch::{BranchName, InvalidBranch, is_branch_name};
pub use forge::{Forge, ForgeKind, NoProject, Project};
pub use redact::redact;
pub use remote::{InvalidRemote, Remote, Scheme};
pub use remote_pattern::{RemoteBaseUrl, RemotePattern};
pub use rules::GitRules;
pub(crate) use tree_path::folded_text;
pub use tree_path::{InvalidTreePath, TreePath, folded, is_dot_git};
