//! Unified diffs, read and planned as `git apply` would, with no file touched.
//!
//! [`parse`](parse::parse) reads a diff, [`plan`](plan::plan) works out what every file would become. Where
//! `git apply` (default flags, outside a repository) accepts, the plan holds the same bytes and modes; where
//! it refuses, so do we. Beyond git we refuse only what endangers the workspace, see [`Refusal`].
//!
//! Absent on purpose: file access (the caller brings a [`Tree`](plan::Tree) and carries the plan out), clocks,
//! fuzz, `-R`, `--3way`, whitespace repair, binary patches.

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
pub use plan::{Plan, PlanError, Tree, plan};
pub use refusal::{Excerpt, Refusal};
pub use work::WorkBudget;
