//! Hostile diffs: none may change a byte, and none may cost much.

mod cost;

use std::collections::BTreeMap;
use std::io;

use belljar_runner::patch::plan::FileTreeEntry;
use belljar_runner::patch::{FileMode, FileTree, Plan, RelativeName, parse, plan};

/// A workspace that notices when it is asked for something outside.
struct Workspace(BTreeMap<&'static str, FileTreeEntry>);

/// Expected kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// A policy refusal that mentions escaping.
    Escape,
    /// A policy refusal.
    Policy,
    /// A refusal of a diff that is malformed or doesn't fit.
    Failure,
}
use Refusal::{Escape, Failure, Policy};

impl Workspace {
    fn new() -> Self {
        let file = |text: &str| FileTreeEntry::File { mode: FileMode::Plain, bytes: text.into() };
        Self(BTreeMap::from([
            ("x", file("a\n")),
            ("d/y", file("b\n")),
            ("README", file("r\n")),
            ("link", FileTreeEntry::Symlink),
        ]))
    }
}

impl FileTree for Workspace {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        let path = path.as_str();
        assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."), "{path} was looked up");
        let is_below_link = path.starts_with("link/");
        let below = format!("{path}/");
        Ok(match self.0.get(path) {
            Some(entry) => Some(entry.clone()),
            None if is_below_link => Some(FileTreeEntry::Symlink),
            None => self.0.keys().any(|name| name.starts_with(&below)).then_some(FileTreeEntry::Directory),
        })
    }

    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        let below = format!("{directory}/");
        Ok(self
            .0
            .keys()
            .filter_map(|name| name.strip_prefix(&below))
            .map(|name| name.as_bytes().to_vec())
            .collect())
    }
}

fn planned(diff: &[u8]) -> Result<Plan, (Refusal, String)> {
    let kind = |is_policy: bool, message: &str| match is_policy {
        true if message.contains("path escapes workspace") => Escape,
        true => Policy,
        false => Failure,
    };
    let patch =
        parse(diff).map_err(|error| (kind(error.is_policy(), &error.to_string()), error.to_string()))?;
    plan(&patch, &mut Workspace::new())
        .map_err(|error| (kind(error.is_policy(), &error.to_string()), error.to_string()))
}

/// The diff is refused this way, alone as well as behind a section that fits.
fn assert_refused(diff: &str, expected: Refusal) {
    let good = "diff --git a/README b/README\n--- a/README\n+++ b/README\n@@ -1 +1 @@\n-r\n+R\n";
    assert!(planned(good.as_bytes()).is_ok());
    for diff in [diff.to_owned(), format!("{good}{diff}")] {
        match planned(diff.as_bytes()) {
            Err((found, message)) => assert_eq!(found, expected, "{diff}\n{message}"),
            Ok(plan) => panic!("{diff}\n{plan:?}"),
        }
    }
}

const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";
const NEW: &str = "@@ -0,0 +1 @@\n+a\n";

#[test]
fn patch_names_outside_the_workspace_are_escapes() {
    for name in [
        "../x",
        "a/../x",
        "a/../../etc/passwd",
        "a/d/../../x",
        "/etc/passwd",
        "a/..",
        "\"../x\"",
        "\"a/\\056\\056/x\"",
    ] {
        assert_refused(&format!("--- {name}\n+++ {name}\n{HUNK}"), Escape);
        assert_refused(&format!("--- /dev/null\n+++ {name}\n{NEW}"), Escape);
        assert_refused(&format!("--- {name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), Escape);
        assert_refused(&format!("diff --git a/x b/x\n--- a/x\n+++ {name}\n{HUNK}"), Escape);
        assert_refused(&format!("diff --git a/x b/x\n--- {name}\n+++ b/x\n{HUNK}"), Escape);
    }
    for name in ["../x", "/etc/passwd", "d/../../x", "\"../x\"", "\"/etc/passwd\""] {
        for (from, to) in [(name, "y"), ("x", name)] {
            assert_refused(&format!("diff --git a/x b/y\nrename from {from}\nrename to {to}\n"), Escape);
            assert_refused(&format!("diff --git a/x b/y\ncopy from {from}\ncopy to {to}\n"), Escape);
        }
    }
    for line in ["a/../x b/../x", "../x ../x", "\"../x\" \"../x\""] {
        assert_refused(&format!("diff --git {line}\nnew file mode 100644\n"), Escape);
        assert_refused(&format!("diff --git {line}\ndeleted file mode 100644\n"), Escape);
        assert_refused(&format!("diff --git {line}\nold mode 100644\nnew mode 100755\n"), Escape);
    }
}

#[test]
fn patch_into_a_git_directory_is_refused() {
    for name in [
        ".git/config",
        ".GIT/config",
        ".git /config",
        ".git./x",
        "git~1/x",
        "GIT~1/hooks/x",
        "d/.git/x",
        ".git",
        ".git:x",
        ".g\u{200c}it/x",
    ] {
        assert_refused(&format!("--- a/{name}\n+++ b/{name}\n{HUNK}"), Policy);
        assert_refused(
            &format!(
                "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n{NEW}"
            ),
            Policy,
        );
        assert_refused(&format!("diff --git a/x b/{name}\nrename from x\nrename to {name}\n"), Policy);
    }
    assert_refused(&format!("--- \"a/.g\\151t/config\"\n+++ \"b/.g\\151t/config\"\n{HUNK}"), Policy);
}

#[test]
fn ambiguous_or_unprintable_patch_names_are_refused() {
    for name in [
        "\"b/\\000\"",
        "\"b/x\\000.txt\"",
        "\"b/\\033[31m\"",
        "\"b/\\377\"",
        "\"b/\\177\"",
        "b/x\u{1}",
        "b/x\0",
    ] {
        assert_refused(&format!("--- /dev/null\n+++ {name}\n{NEW}"), Policy);
    }
    for name in ["b/./y", "b/d//./y", "b//y", "b/d/"] {
        let (found, _) = planned(format!("--- /dev/null\n+++ {name}\n{NEW}").as_bytes()).unwrap_err();
        assert!(matches!(found, Escape | Policy), "{name}");
    }
    let long = "x".repeat(300);
    assert_refused(&format!("--- /dev/null\n+++ b/{long}\n{NEW}"), Policy);
    let deep = "d/".repeat(2100);
    assert_refused(&format!("--- /dev/null\n+++ b/{deep}x\n{NEW}"), Policy);
}

#[test]
fn symlinks_submodules_and_special_modes_are_refused() {
    for mode in [
        "120000",
        "160000",
        "104755",
        "102755",
        "101777",
        "040000",
        "060644",
        "020644",
        "010644",
        "000000",
        "755",
        "7777777777777",
    ] {
        assert_refused(
            &format!("diff --git a/y b/y\nnew file mode {mode}\n--- /dev/null\n+++ b/y\n{NEW}"),
            Policy,
        );
        assert_refused(&format!("diff --git a/x b/x\ndeleted file mode {mode}\n"), Policy);
        assert_refused(&format!("diff --git a/x b/x\nold mode 100644\nnew mode {mode}\n"), Policy);
        assert_refused(&format!("diff --git a/x b/x\nindex 1..2 {mode}\n--- a/x\n+++ b/x\n{HUNK}"), Policy);
    }
}

#[test]
fn patch_through_a_symlink_is_refused() {
    assert_refused(&format!("--- a/link\n+++ b/link\n{HUNK}"), Policy);
    assert_refused(&format!("--- a/link/x\n+++ b/link/x\n{HUNK}"), Policy);
    assert_refused(&format!("--- /dev/null\n+++ b/link/x\n{NEW}"), Policy);
    assert_refused("diff --git a/x b/link/x\nrename from x\nrename to link/x\n", Policy);
    assert_refused("diff --git a/link/x b/y\ncopy from link/x\ncopy to y\n", Policy);
    // A link that the patch makes itself, to write through.
    let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n";
    assert_refused(
        &format!("{link}diff --git a/l/x b/l/x\nnew file mode 100644\n--- /dev/null\n+++ b/l/x\n{NEW}"),
        Policy,
    );
}

#[test]
fn binary_patches_are_refused_in_every_form() {
    let header = "diff --git a/x b/x\nindex 0123456789012345678901234567890123456789..0123456789012345678901234567890123456780 100644\n";
    assert_refused(
        &format!("{header}GIT binary patch\nliteral 2\nJcmYew009I5000aD\n\nliteral 2\nJcmYew009I5000aD\n\n"),
        Policy,
    );
    assert_refused(&format!("{header}GIT binary patch\ndelta 2\nJcmYew009I5000aD\n\n"), Policy);
    assert_refused(&format!("{header}Binary files a/x and b/x differ\n"), Policy);
    assert_refused("Binary files a/x and b/x differ\n", Policy);
    assert_refused(
        "diff -r a/x b/x\nBinary files a/x and b/x differ\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        Policy,
    );
}

#[test]
fn other_diff_formats_are_rejected() {
    for diff in [
        "1c\nb\n.\n",
        "1c1\n< a\n---\n> b\n",
        "*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
        "diff -e a/x b/x\n1d\n",
        "Index: x\n=====\n",
    ] {
        assert!(matches!(planned(diff.as_bytes()), Err((Failure, _))), "{diff}");
    }
}

#[test]
fn dev_null_is_not_patched_as_a_file() {
    assert_refused(&format!("--- /dev/null\n+++ /dev/null\n{NEW}"), Escape);
    assert_refused(&format!("diff --git a/x b/x\n--- /dev/null\n+++ b/x\n{NEW}"), Policy);
    assert_refused("diff --git a/x b/x\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", Policy);
    assert_refused("diff --git a/x b/x\nrename from x\nrename to /dev/null\n", Escape);
}

#[test]
fn patch_that_does_not_fit_fails_as_a_whole() {
    assert_refused(&format!("--- a/missing\n+++ b/missing\n{HUNK}"), Failure);
    assert_refused(&format!("--- a/d/y\n+++ b/d/y\n{HUNK}"), Failure);
    assert_refused(&format!("--- /dev/null\n+++ b/x\n{NEW}"), Failure);
    assert_refused(&format!("--- /dev/null\n+++ b/x/y\n{NEW}"), Failure);
    assert_refused(&format!("--- /dev/null\n+++ b/d\n{NEW}"), Failure);
    assert_refused("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", Failure);
    assert_refused(&format!("--- a/x\n+++ b/x\n{}", HUNK.replace('a', "no")), Failure);
    // A repeated section, and overlapping hunks.
    assert_refused(&format!("--- a/x\n+++ b/x\n{HUNK}--- a/x\n+++ b/x\n{HUNK}"), Failure);
    assert_refused(&format!("--- a/x\n+++ b/x\n{HUNK}{HUNK}"), Failure);
}

#[test]
fn malformed_counts_are_errors() {
    for header in [
        "@@ -1,2 +1 @@",
        "@@ -1 +1,2 @@",
        "@@ -1,18446744073709551617 +1 @@",
        "@@ -1,-1 +1,-1 @@",
        "@@ -1,0 +1,0 @@",
        "@@ -,1 +1 @@",
        "@@ -1;1 +1 @@",
        "@@ -1,4294967297 +1,4294967297 @@",
    ] {
        assert_refused(&format!("--- a/x\n+++ b/x\n{header}\n-a\n+b\n"), Failure);
    }
}

#[test]
fn names_that_differ_in_case_are_different_files() {
    let diff = format!("--- /dev/null\n+++ b/New\n{NEW}--- /dev/null\n+++ b/new\n{NEW}");
    assert_eq!(planned(diff.as_bytes()).unwrap().changes.len(), 2);
    assert_refused(&format!("--- a/X\n+++ b/X\n{HUNK}"), Failure);
}
