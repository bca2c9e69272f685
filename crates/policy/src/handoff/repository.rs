//! Content of a repository below `.git`: most of it is data that Git uses, and some of it is run.

use crate::git::is_dot_git;

/// Kinds of a path's entries before and after a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryKinds {
    pub(super) is_file: bool,
    pub(super) is_link: bool,
    pub(super) is_directory: bool,
    /// See [`ChangedPath::is_new_git_object`](super::Touched::is_new_git_object).
    pub(super) is_new_object: bool,
}

/// Meaning of a path for repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepositoryRole {
    /// Git runs or trusts the content. The reason why it requires an approval of its own.
    Trusted(&'static str),
    /// Data of the tree's own repository, with the reason why all of it together requires an approval. A new object has no
    /// effect until something refers to it.
    Data(Option<&'static str>),
    /// Path outside of any repository.
    Elsewhere,
}

/// Judges a path. The parts are folded.
pub(super) fn judge(parts: &[&str], kinds: EntryKinds) -> RepositoryRole {
    let of_directory = review_directory(parts).filter(|_| kinds.is_directory);
    let of_file = review(parts, kinds.is_new_object).filter(|_| kinds.is_file);
    if let Some(reason) = of_directory.or(of_file) {
        return RepositoryRole::Trusted(reason);
    }
    match parts {
        [first, _, ..] if is_dot_git(first) && kinds.is_link => {
            RepositoryRole::Trusted("git reads and writes what it leads to")
        }
        [first, "objects", ..] if is_dot_git(first) => RepositoryRole::Data(None),
        [first, _, ..] if is_dot_git(first) => RepositoryRole::Data(Some(
            "git acts on its index, HEAD, references and reflogs, and a review doesn't show all that it will write",
        )),
        _ => RepositoryRole::Elsewhere,
    }
}

/// Returns the reason why a path in a repository requires an approval. The parts are folded; for `is_new_object` see
/// [`ChangedPath::is_new_git_object`](super::Touched::is_new_git_object).
fn review(parts: &[&str], is_new_object: bool) -> Option<&'static str> {
    let name = parts.last()?;
    if is_dot_git(name) {
        return Some("it is a repository of its own, or says where one is");
    }
    if let Some(at) = parts.iter().position(|part| is_dot_git(part)) {
        // Only the tree's own repository: git uses one below it for commands that are run there.
        let inside = &parts[at + 1..];
        return match at == 0 && is_data(inside, is_new_object) {
            true => None,
            false => Some("git runs what its hooks and settings say, or trusts what is there"),
        };
    }
    // Git obeys the settings of such a directory, whatever its name and place: every repository has this file.
    (*name == "head")
        .then_some("a directory with such a file may be a repository, and git would use its settings")
}

/// Returns the reason why a directory in a repository that is itself made or removed requires an approval.
fn review_directory(parts: &[&str]) -> Option<&'static str> {
    match parts {
        [first, inside @ ..] if is_dot_git(first) => match is_directory_of_data(inside) {
            true => None,
            false => Some("git needs some directories of a repository, and others keep it from working"),
        },
        _ => review(parts, false),
    }
}

/// Returns true for directories that Git makes and removes as branches and objects come and go. Without `refs` and `objects` a
/// directory is no repository, and a name that ends with `.lock` blocks Git from writing.
fn is_directory_of_data(inside: &[&str]) -> bool {
    let is_hex = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match inside {
        ["objects", two] => is_hex(two),
        ["logs"] | ["logs", "refs"] | ["logs", "refs", "heads" | "tags" | "remotes"] => true,
        ["refs", below @ ..] | ["logs", "refs", below @ ..] => is_reference(below),
        _ => false,
    }
}

/// Returns true for what a commit writes: new objects, references, and their logs; nothing that git runs. Git trusts that an
/// object has the content that its name states. So existing objects are no data, nor are packs, which may hold a second object
/// of any name. Nor is `packed-refs`, which can replace one object by another (`refs/replace`).
fn is_data(inside: &[&str], is_new_object: bool) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match inside {
        ["head" | "orig_head" | "index" | "commit_editmsg" | "description"] => true,
        ["objects", two, rest] => {
            is_new_object && two.len() == 2 && matches!(rest.len(), 38 | 62) && is_hex(two) && is_hex(rest)
        }
        ["logs", "head"] => true,
        ["refs", below @ ..] | ["logs", "refs", below @ ..] => is_reference(below),
        _ => false,
    }
}

/// Returns true for paths below `refs`, unless they could make a repository of a directory there: Git takes both a log and a
/// reference for a `HEAD`.
fn is_reference(below: &[&str]) -> bool {
    match below {
        ["stash"] | ["remotes", _, "head"] => true,
        ["heads" | "tags" | "remotes", names @ ..] => {
            // Git never creates a reference with such an ending, and waits if one exists.
            let is_other =
                |name: &&str| matches!(*name, "head" | "objects" | "commondir") || name.ends_with(".lock");
            !names.is_empty() && !names.iter().any(is_other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_files_other_than_commits_require_approval() {
        let asks = |path: &str| review(&path.split('/').collect::<Vec<_>>(), true).is_some();
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
            ".git/objects/info/commit-graph",
            ".git/objects/pack/pack-1.pack",
            ".git/objects/pack/pack-1.idx",
            ".git/objects/pack/multi-pack-index",
            ".git/packed-refs",
            ".git/fetch_head",
            ".git/reftable/tables.list",
            ".git/worktrees/a/gitdir",
            ".git/refs/replace/abc",
            ".git/modules/a/config",
            ".git/rebase-merge/git-rebase-todo",
            ".git/commondir",
            ".git/shallow",
            "a/.git/index",
            "a/head",
            "head",
            // Each of these may be the file that makes a repository of a directory on its path, or a repository's settings.
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
            ".git/refs/heads/main.lock",
            ".git/refs/heads/a.lock/b",
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
    fn git_directory_requires_approval_except_refs_and_objects() {
        let asks = |path: &str| review_directory(&path.split('/').collect::<Vec<_>>()).is_some();
        for data in [
            ".git/objects/ab",
            ".git/refs/heads/feature",
            ".git/refs/tags/v1",
            ".git/refs/remotes/origin",
            ".git/logs",
            ".git/logs/refs/heads",
            ".git/logs/refs/heads/feature",
            "src/new",
        ] {
            assert!(!asks(data), "{data}");
        }
        for runs in [
            ".git",
            ".git/refs",
            ".git/refs/heads",
            ".git/refs/heads/main.lock",
            ".git/refs/replace",
            ".git/objects",
            ".git/objects/pack",
            ".git/objects/info",
            ".git/index",
            ".git/index.lock",
            ".git/head.lock",
            ".git/hooks",
            ".git/branches",
            "a/.git",
            "a/.git/refs/heads/feature",
        ] {
            assert!(asks(runs), "{runs}");
        }
    }

    #[test]
    fn git_object_needs_no_approval_if_new_and_named_by_its_hash() {
        let asks = |two: &str, rest: &str| review(&[".git", "objects", two, rest], true).is_some();
        let rest = "cdef0123456789abcdef0123456789abcdef01";
        let long = "cdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789";
        assert!(!asks("ab", rest) && !asks("00", rest) && !asks("00", long));
        for (two, rest) in [
            ("ab", &rest[1..]),
            ("abc", rest),
            ("a", rest),
            ("xy", rest),
            ("ab", "notxhexadecimalxbutxasxlongxasxanxidx"),
            ("info", "alternates"),
            ("ab", &long[1..]),
        ] {
            assert!(asks(two, rest), "{two}/{rest}");
        }
        assert!(asks("ab", &format!("{rest}0")));
        assert!(asks("ab", &format!("{}x", &rest[1..])));
        assert!(
            review(&[".git", "objects", "ab", rest], false).is_some(),
            "it exists already, or doesn't match the hash in its name"
        );
    }
}
