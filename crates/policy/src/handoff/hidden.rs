//! Hidden names: files and directories whose name begins with a dot are settings and states of tools. There are new tools every
//! week. So each such name requires an approval, unless it is known that no tool runs its content.

use crate::git::is_dot_git;

/// Names of files and directories whose content no tool runs, or that only mark a directory.
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

/// Hidden directories in which users work, or whose content no tool runs.
const PLACES_OF_WORK: [&str; 3] = [".cache", ".worktrees", ".worktree"];

/// Usual name of temporary directories.
const TEMPORARY: &str = ".tmp";

/// Directory below a hidden one that holds work trees, such as `.claude/worktrees`. The tool of the hidden directory runs
/// nothing in it.
const WORK_TREES: &str = "worktrees";

/// Returns the reason why a path requires an approval by a hidden name in it. The parts are folded.
pub(super) fn review(parts: &[&str]) -> Option<&'static str> {
    // Repositories have rules of their own.
    if parts.iter().any(|part| is_dot_git(part)) {
        return None;
    }
    let mut parts = parts.iter();
    parts
        .find(|part| is_hidden(part))
        .map(|_| "a hidden file or directory is for tools, which run or read many of them")
}

/// Returns the reason why a path requires an approval by a hidden directory above the tree. The names are folded.
pub(super) fn review_at(place: &[String], own: &[&str]) -> Option<&'static str> {
    // Repositories have rules of their own.
    if own.iter().any(|part| is_dot_git(part)) {
        return None;
    }
    let is_state = |at: usize| {
        place.get(at).is_some_and(|part| part == ".local")
            && place.get(at + 1).is_some_and(|part| part == "state")
    };
    let counts = |(at, part): (usize, &String)| {
        let is_of_work = PLACES_OF_WORK.contains(&part.as_str()) || part.starts_with(TEMPORARY);
        is_hidden(part) && !is_dot_git(part) && !is_of_work && !is_state(at)
    };
    let is_counted = place.iter().enumerate().any(counts);
    is_counted.then_some(
        "the tree is below a hidden directory, which is for tools, and they run or read much of it",
    )
}

/// Returns the names above a tree by which it may be trusted: those below the last directory of work trees in a hidden
/// directory.
pub(super) fn above(place: &[String]) -> &[String] {
    let is_of_work_trees = |at: &usize| {
        let above = place.get(..*at).unwrap_or_default();
        let is_in_hidden =
            above.iter().any(|part| is_hidden(part)) && !above.iter().any(|part| is_dot_git(part));
        is_in_hidden && place.get(*at).is_some_and(|part| part == WORK_TREES)
    };
    let last = (0..place.len()).rev().find(is_of_work_trees);
    last.and_then(|at| place.get(at + 1..)).unwrap_or(place)
}

fn is_hidden(part: &str) -> bool {
    part.len() > 1 && part.starts_with('.') && !HARMLESS.contains(&part)
}
