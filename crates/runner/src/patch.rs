//! Unified diffs, read and planned as `git apply` would, with no file touched.
//!
//! [`parse`](parse::parse) reads a diff, [`plan`](plan::plan) works out what every file would become. Where `git apply`
//! (default flags, outside a repository) accepts, the plan holds the same bytes and modes; where it refuses, so do we.
//! Beyond git we refuse only what endangers the workspace, see [`Refusal`].
//!
//! For safety, we refuse some patches that git accepts:
//! - names that are absolute or have a `..` before stripping, that hold control characters other than tabs and line
//!   breaks, aren't UTF-8, have an unclosed quote, or are a spelling of `.git` on any file system;
//! - modes other than a plain file's, and special bits, which git drops silently;
//! - symlinks and special files in the tree, and directories as files, which git takes for submodules;
//! - binary patches in every form, also where git skips a note about one, or stops at a broken one and applies what
//!   came before;
//! - `/dev/null` in a git header that doesn't create or delete, which git takes for a file of that name;
//! - anything that exceeds [`Limits`].
//!
//! Absent on purpose: file access (the caller provides a [`FileTree`] and carries the plan out), clocks, fuzz, `-R`,
//! `--3way`, whitespace repair, binary patches.

pub mod apply;
pub mod hunk;
mod limits;
mod mode;
pub mod name;
pub mod parse;
pub mod plan;
mod refusal;
mod work;

pub use limits::Limits;
pub use mode::FileMode;
pub use name::RelativeName;
pub use parse::{ParseError, Patch, parse};
pub use plan::{FileTree, Plan, PlanError, plan};
pub use refusal::{Excerpt, Refusal};
pub use work::WorkBudget;
