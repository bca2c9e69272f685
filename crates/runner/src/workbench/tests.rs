//! Tests that need no sandbox.

use super::*;

#[test]
fn git_directory_is_read_only_in_every_spelling() {
    for path in [".git/config", "sub/.git/hooks/x", ".GIT/config", "a/.git", "git~1/config", ".git./config"] {
        let refused = changeable(&StepPath::parse(path).unwrap()).unwrap_err();
        assert_eq!(refused.why, RefusalReason::Forbidden, "{path}");
    }
    for path in [".gitignore", ".github/workflows/x.yml", "git/config", "a.git/config"] {
        assert!(changeable(&StepPath::parse(path).unwrap()).is_ok(), "{path}");
    }
}

#[test]
fn path_outside_the_workspace_is_refused() {
    for path in ["../x", "a/../../x", "/etc/passwd", "/workspace/../x"] {
        assert_eq!(
            beneath(&StepPath::parse(path).unwrap()).unwrap_err().why,
            RefusalReason::Forbidden,
            "{path}"
        );
    }
    assert_eq!(beneath(&StepPath::parse("./a/./b").unwrap()).unwrap().as_str(), "a/b");
}
