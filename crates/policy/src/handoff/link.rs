//! Checks where a symbolic link in a tree leads.

/// Returns the reason why a link requires an approval.
pub(super) fn review(path: &str, target: &str) -> Option<&'static str> {
    let is_absolute = target.starts_with(['/', '\\']) || target.as_bytes().get(1) == Some(&b':');
    if target.is_empty() || is_absolute {
        return Some("it leads out of the tree");
    }
    let mut depth = path.split('/').count() - 1;
    let mut has_gone_down = false;
    for part in target.split(['/', '\\']) {
        match part {
            "" | "." => {}
            // The part before may itself be a link, and `..` then leads up from another place.
            ".." if has_gone_down => {
                return Some("its path goes down and up again, so its target can't be determined");
            }
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return Some("it leads out of the tree"),
            },
            part if crate::git::is_dot_git(part) => return Some("it leads into a repository"),
            _ => has_gone_down = true,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_inside_the_tree_needs_no_approval() {
        for (path, target) in [
            ("a", "b"),
            ("a/b", "../c"),
            ("a/b/c", "../../d/e"),
            ("a", "./b/c"),
            ("a/b", "c"),
            ("a/b", "./../c"),
            ("a/b/c", "..//.././d"),
        ] {
            assert_eq!(review(path, target), None, "{path} -> {target}");
        }
        for (path, target) in [
            ("a", "/etc/passwd"),
            ("a", ".."),
            ("a", "../b"),
            ("a/b", "../../c"),
            ("a", "b/../c"),
            ("a/b", "c/../d"),
            ("a", ".git/hooks"),
            ("a/b", "../.GIT"),
            ("a", "C:\\Windows"),
            ("a", "\\\\server\\share"),
            ("a", "..\\b"),
            ("a", ""),
        ] {
            assert!(review(path, target).is_some(), "{path} -> {target}");
        }
    }

    #[test]
    fn link_finding_states_its_reason() {
        for (path, target, why) in [
            ("a", "/b", "it leads out of the tree"),
            ("a/b", "../../c", "it leads out of the tree"),
            ("a/b/c", "d/../e", "its path goes down and up again, so its target can't be determined"),
            ("a/b", "../.git", "it leads into a repository"),
        ] {
            assert_eq!(review(path, target), Some(why), "{path} -> {target}");
        }
    }
}
