//! Hidden names: files and directories that begin with a dot are settings and states of tools. New tools come every week, so each such
//! name takes a yes unless it is known that no tool runs what is in it.

use crate::git::is_dot_git;

/// Names of files and directories that hold nothing that a tool runs, or that mark a directory.
const HARMLESS: [&str; 12] = [
    ".gitkeep",
    ".keep",
    ".placeholder",
    ".nojekyll",
    ".ds_store",
    ".well-known",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
    ".hypothesis",
    ".coverage",
    ".nyc_output",
];

/// Why a path needs a yes by a hidden name in it, if it does. The parts are folded.
pub(super) fn review(parts: &[&str]) -> Option<&'static str> {
    // A repository has rules of its own.
    if parts.iter().any(|part| is_dot_git(part)) {
        return None;
    }
    let is_hidden = |part: &&&str| part.len() > 1 && part.starts_with('.') && !HARMLESS.contains(part);
    parts
        .iter()
        .find(is_hidden)
        .map(|_| "a hidden file or directory is for tools, which run or obey many of them")
}
