//! What the host's git may do for a sandbox: where it may go, what it may call a branch, which names may be in a tree, and what
//! may be repeated of what it says.
//!
//! ```text
//! URL ─► Remote (one form) ─► GitRules::decide ─► Allowed<Destination> ─► resolved, once ─► vet ─► Allowed<Vetted> ─► git, pinned
//! ```
//! The decisions about hosts and addresses are those of [`crate::egress`]: nothing is decided twice.

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
pub use remote_pattern::{Below, RemotePattern};
pub use rules::GitRules;
pub(crate) use tree_path::folded_text;
pub use tree_path::{InvalidTreePath, TreePath, folded, is_dot_git};
