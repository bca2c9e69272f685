//! The host's git: what it fetches for a sandbox, and how a sandbox's work gets back.
//!
//! ```text
//! remote ─► pinned ─► Base: a bare clone of the host's own ─► laid out for a sandbox ─► … the agent writes …
//!                       │                                                                      │
//!                       └─ commit ◄─ fast-import ◄─ files, read by descriptors; names vetted ◄─┘
//!                            │
//!                            └─► handed off? ─► noted, recorded ─► pushed: a new branch, or nothing ─► a pull request, if one is wanted
//! ```
//! Git never runs in a directory that a sandbox has written to: what is there is read as files. The host's own clone is never
//! in a sandbox. Git gets addresses that were looked at, and asks nobody where a name leads; of the user's settings it gets
//! those that say who the user is, and no others.

mod author;
mod base;
mod commit;
mod environment;
mod fetch;
mod ignored;
mod in_session;
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

pub use author::author;
pub use base::{Base, BaseError, BaseRecord};
pub use commit::{Attribution, Author, CommitError, InvalidAuthor};
pub use environment::HostEnv;
pub(crate) use fetch::fetch;
pub use ignored::Ignored;
pub use lay_out::lay_out;
pub use push::{Prepared, PushError, PushOrder, Pushed, Standing, Wanted};
pub use runner::GitError;
pub use tree::{TreeError, TreeLimits};
