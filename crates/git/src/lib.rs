//! The host's git: fetches workspaces for sandboxes, and commits and pushes their work.
//!
//! ```text
//! remote ─► pinned ─► Base: a bare clone of the host's own ─► laid out for a sandbox ─► … the agent writes …
//!                       │                                                                      │
//!                       └─ commit ◄─ fast-import ◄─ files, read by descriptors; names vetted ◄─┘
//!                            │
//!                            └─► handed off? ─► noted, recorded ─► pushed, if the branch is new ─► pull request, if requested
//! ```
//! Git never runs in a directory that a sandbox has written to: its content is read as files. The host's own clone is never
//! in a sandbox. Git gets vetted IP addresses and resolves no hostnames. Of the user's git settings it gets only those that state
//! the user's identity.

#![forbid(unsafe_code)]

mod author;
mod base;
pub mod clone;
mod commit;
mod environment;
mod fetch;
mod ignored;
mod in_workspace;
mod journal;
mod lay_out;
mod leftovers;
mod obeyed;
pub mod pull_request;
mod push;
mod quarantine;
mod reach;
mod runner;
mod tree;

pub use author::author_or_default;
pub use base::{BaseError, BaseRecord, HostClone};
pub use commit::{Attribution, Author, CommitError, InvalidAuthor};
pub use environment::HostEnv;
pub(crate) use fetch::fetch;
pub use ignored::IgnoredFiles;
pub use lay_out::{WorkspaceLayout, lay_out};
pub use push::{GitPushResult, PreparedPush, PushError, PushParams, RefOrigin, RequestedPullRequest};
pub use runner::GitError;
pub use tree::TreeError;
