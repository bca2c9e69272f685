//! Agents in sandboxes: real ones that edit a file, and small ones that do exactly what a test needs.

pub(crate) mod small;

mod clones;
mod endings;
mod grants;
mod images;
mod messages;
mod real;
mod words;
