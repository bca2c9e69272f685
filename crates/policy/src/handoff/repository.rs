//! What is in a repository itself, below `.git`: most of it is data, and some of it runs.

use crate::git::is_dot_git;

/// Why a path in a repository needs a yes, if it is in one and does. The parts are folded.
pub(super) fn review(parts: &[&str]) -> Option<&'static str> {
    let name = parts.last()?;
    if is_dot_git(name) {
        return Some("it is a repository of its own, or says where one is");
    }
    if let Some(at) = parts.iter().position(|part| is_dot_git(part)) {
        // Only the tree's own: git finds one below it for commands that are run there.
        let inside = &parts[at + 1..];
        return match at == 0 && is_data(inside) {
            true => None,
            false => Some("git runs what its hooks and settings say, or trusts what is there"),
        };
    }
    // Git obeys the settings of such a directory, whatever its name is and wherever it is: no repository is without this file.
    (*name == "head").then_some("a directory with such a file may be a repository, whose settings git heeds")
}

/// Objects, names of commits, and their logs: nothing that git runs or goes by.
fn is_data(inside: &[&str]) -> bool {
    let is_hex =
        |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match inside {
        [
            "head" | "orig_head" | "fetch_head" | "index" | "packed-refs" | "commit_editmsg" | "description",
        ] => true,
        ["objects", "pack", name] => [".pack", ".idx", ".rev", ".keep"].iter().any(|end| name.ends_with(end)),
        ["objects", two, rest] => is_hex(two, 2) && is_hex(rest, 38),
        ["logs", "head"] => true,
        ["refs", below @ ..] | ["logs", "refs", below @ ..] => is_reference(below),
        _ => false,
    }
}

/// Returns true for what is below `refs`, unless it could make a repository of a directory there: a log and a reference are both
/// taken for a `HEAD`.
fn is_reference(below: &[&str]) -> bool {
    match below {
        ["stash"] | ["remotes", _, "head"] => true,
        ["heads" | "tags" | "remotes", names @ ..] => {
            !names.is_empty() && !names.iter().any(|name| matches!(*name, "head" | "objects" | "commondir"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_data_and_everything_else_in_a_repository_needs_a_yes() {
        let asks = |path: &str| review(&path.split('/').collect::<Vec<_>>()).is_some();
        for data in [
            ".git/index",
            ".git/head",
            ".git/refs/heads/x",
            ".git/logs/refs/heads/x",
            ".git/logs/refs/remotes/origin/head",
            ".git/logs/refs/stash",
            ".git/logs/head",
            ".git/refs/remotes/origin/head",
            ".git/refs/remotes/origin/a/config",
            ".git/refs/stash",
            ".git/objects/ab/cdef0123456789abcdef0123456789abcdef01",
            ".git/objects/pack/pack-1.pack",
            "src/main.rs",
            "docs/refs/heads.md",
            "a/refs/heads/x",
        ] {
            assert!(!asks(data), "{data}");
        }
        for runs in [
            ".git",
            "a/.git",
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/config.worktree",
            ".git/info/attributes",
            ".git/info/grafts",
            ".git/objects/info/alternates",
            ".git/refs/replace/abc",
            ".git/modules/a/config",
            ".git/rebase-merge/git-rebase-todo",
            ".git/commondir",
            ".git/shallow",
            "a/.git/index",
            "a/head",
            "head",
            // Each may be the one file that makes a repository of a directory with such a name on the way, or its settings.
            "docs/refs/head",
            "refs/head",
            "refs/remotes/origin/head",
            "a/refs/b/c/head",
            ".git/refs/head",
            ".git/refs/heads",
            ".git/refs/heads/head",
            ".git/refs/heads/a/head",
            ".git/refs/remotes/head",
            ".git/refs/remotes/origin/a/head",
            ".git/refs/remotes/origin/objects/x",
            ".git/refs/remotes/origin/commondir",
            ".git/logs/config",
            ".git/logs/commondir",
            ".git/logs/objects/x",
            ".git/logs/refs/config",
            ".git/modules/a/refs/remotes/origin/head",
        ] {
            assert!(asks(runs), "{runs}");
        }
    }

    #[test]
    fn an_object_is_one_by_its_whole_name_and_anything_else_beside_it_needs_a_yes() {
        let asks = |two: &str, rest: &str| review(&[".git", "objects", two, rest]).is_some();
        let rest = "cdef0123456789abcdef0123456789abcdef01";
        assert!(!asks("ab", rest) && !asks("00", rest));
        for (two, rest) in [
            ("ab", &rest[1..]),
            ("abc", rest),
            ("a", rest),
            ("xy", rest),
            ("ab", "notxhexadecimalxbutxasxlongxasxanxidx"),
            ("info", "alternates"),
        ] {
            assert!(asks(two, rest), "{two}/{rest}");
        }
        assert!(asks("ab", &format!("{rest}0")));
        assert!(asks("ab", &format!("{}x", &rest[1..])));
    }
}
