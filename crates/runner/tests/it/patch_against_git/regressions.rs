//! Cases in which we once differed from git, shrunken, and others that are easily got wrong.

use super::case::Case;
use super::oracle::Git;
use super::verdict::{Verdict, compare};
use super::world::{File, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedOutcome {
    Accepted,
    Refused,
    RefusedByPolicy,
}
use ExpectedOutcome::{Accepted, Refused, RefusedByPolicy};

/// Names that end in `/` are empty directories, those that end in `*` executable files.
type FileList = &'static [(&'static str, &'static str)];

const FOO: FileList = &[("x", "a\nfoo\nbar\n")];
const AB: FileList = &[("x", "a\nb\n")];

const CASES: &[(&str, ExpectedOutcome, FileList, &str)] = &[
    // Headers.
    (
        "a hunk header cut off behind a section is corrupt, not absent",
        Refused,
        &[],
        "--- \"./l\"\tx\n+++ \"./e\"\tx\n@@ -0,0 +1 @@\n+a\r\n--- \"./a/b\"\tx\n+++ \"./a/b\"\tx\n@@ -0,",
    ),
    (
        "four bytes of a hunk header are no hunk, and create an empty file",
        Accepted,
        &[],
        "--- a/d/e/z\n+++ b/d/e/z\n@@ -",
    ),
    (
        "a lone git line leaves its name to a file that is created",
        Refused,
        &[],
        "diff --git a/b b/b\nnonsense\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+a\n",
    ),
    (
        "a lone git line leaves its name to the git header below",
        Refused,
        &[],
        "diff --git a/d b/d\ndiff --git a/e b/e\nnew file mode 100644\n",
    ),
    (
        "a lone git line decides which file changes its mode",
        Accepted,
        &[("d", ""), ("e", "")],
        "diff --git a/d b/d\ndiff --git a/e b/e\nold mode 100644\nnew mode 100755\n",
    ),
    (
        "a lone git line is no harm to the file it names",
        Accepted,
        AB,
        "diff --git a/x b/x\ntext\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
    ),
    (
        "a lone git line is no harm to a plain deletion",
        Accepted,
        AB,
        "diff --git a/y b/y\ntext\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
    ),
    (
        "a git line that names nothing is an error",
        Refused,
        AB,
        "diff --git junk\ntext\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-b\n",
    ),
    (
        "a quote in the part to strip is no quoted name",
        Accepted,
        &[],
        "diff --git b\"/x b/x\nnew file mode 100755\n",
    ),
    (
        "what follows a broken binary patch is not skipped",
        RefusedByPolicy,
        &[("d", ""), ("e", "")],
        "diff --git a/d b/d\nold mode 100644\nnew mode 100755\ndiff --git a/e b/e\nindex 1..2\nGIT binary patch\n",
    ),
    (
        "git moves a file to dev/null unless told that it's deleted",
        RefusedByPolicy,
        AB,
        "diff --git a/x b/x\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
    ),
    (
        "an open quote reaches into the next line",
        Refused,
        AB,
        "diff --git \"a/x\" \"b/x\"\n--- \"a/x\n+++ \"b/x\"\n@@ -1,2 +1 @@\n a\n-b\n",
    ),
    (
        "a NUL cuts a name short",
        Refused,
        &[("a/b", "a\n")],
        "--- /dev/null\n+++ n\n@@ -0,0 +1 @@\n+a\n--- \"a/\\000x\"\n+++ a/b\n@@ -1 +1,2 @@\n a\n+b\n",
    ),
    ("a name that starts with a NUL is empty", Refused, &[], "--- /dev/null\n+++ \0b/f\n@@ -0,0 +1 @@\n+a\n"),
    ("a negative mode is no mode", RefusedByPolicy, &[], "diff --git a/e b/e\nnew file mode -1\n"),
    (
        "a mode may have a sign and zeros, and is reduced to the execute bit",
        Accepted,
        AB,
        "diff --git a/x b/x\nold mode 0100664\nnew mode  +100711\n",
    ),
    (
        "a tab belongs to the name of a rename",
        Accepted,
        AB,
        "diff --git a/x b/y\nrename from x\nrename to y\tz\n",
    ),
    (
        "a carriage return ends every name",
        Accepted,
        AB,
        "diff --git a/x b/y\nrename from x\r\nrename to y\r\n",
    ),
    // Places.
    (
        "a hunk fits at the end that another moved up",
        Accepted,
        &[("x", "a\na\n")],
        "--- a/x\n+++ b/x\n@@ -16 +14,0 @@\n-a\n@@ -26 +24 @@\n-a\n+b\n",
    ),
    (
        "a hunk without context appends, wherever it was meant to go",
        Accepted,
        FOO,
        "--- a/x\n+++ b/x\n@@ -2,0 +3 @@\n+new\n",
    ),
    (
        "an open context line takes an inner line's newline away",
        Accepted,
        FOO,
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n foo\n\\ No newline at end of file\n",
    ),
    (
        "a marker after an empty line makes that line vanish",
        Accepted,
        AB,
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\n+A\n b\n\n\\ No newline at end of file\n",
    ),
    (
        "a marker in the middle joins lines",
        Accepted,
        AB,
        "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n+new\n\\ No newline at end of file\n a\n b\n",
    ),
    (
        "absurd line numbers are cut to 32 bits",
        Accepted,
        &[("x", "-\na\nb\n-\na\nb\n-\n")],
        "--- a/x\n+++ b/x\n@@ -5,2 +4294967297,2 @@\n-a\n+A\n b\n",
    ),
    // Several sections.
    (
        "an edited file survives its deletion",
        Accepted,
        AB,
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-A\n-b\n",
    ),
    (
        "of two creations the second wins",
        Accepted,
        &[],
        "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n",
    ),
    (
        "files trade places",
        Accepted,
        &[("x", "1\n"), ("y*", "2\n")],
        "diff --git a/x b/y\nrename from x\nrename to y\ndiff --git a/y b/x\nrename from y\nrename to x\n",
    ),
    (
        "a plain diff creates nothing below a file, though that file goes",
        Refused,
        &[("a", "c\n")],
        "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n--- a/x\n+++ b/a/b\n@@ -0,0 +1 @@\n+a\n",
    ),
    (
        "a git diff creates a file below one that goes",
        Accepted,
        &[("a", "c\n")],
        "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n--- /dev/null\n+++ b/a/b\n@@ -0,0 +1 @@\n+a\n",
    ),
    (
        "an empty directory makes room for a file",
        Accepted,
        &[("x/", "")],
        "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
    ),
    (
        "a directory that holds another does not",
        Refused,
        &[("x/y/", "")],
        "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
    ),
    (
        "a directory is no submodule",
        RefusedByPolicy,
        &[("a/b", "")],
        "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n+b\n a\n a\n",
    ),
    (
        "a note about binary files is not skipped",
        RefusedByPolicy,
        AB,
        "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-b\nBinary files a/y and b/y differ\n",
    ),
];

#[test]
fn known_patch_cases_have_the_same_result_as_git_apply() {
    let git = Git::new();
    for (name, expected, tree, diff) in CASES {
        let mut before = World::default();
        for (path, text) in *tree {
            if let Some(directory) = path.strip_suffix('/') {
                before.directories.insert(directory.to_owned());
                continue;
            }
            let file = File { executable: path.ends_with('*'), bytes: text.as_bytes().to_vec() };
            before.files.insert(path.trim_end_matches('*').to_owned(), file);
        }
        let case = Case { before, diff: diff.as_bytes().to_vec() };
        let found = match compare(&case, &git) {
            Verdict::BothAccept => Accepted,
            Verdict::BothRefuse => Refused,
            Verdict::PolicyRefuses => RefusedByPolicy,
            Verdict::Differ(difference) => panic!("{name}: {difference}\n{case}"),
        };
        assert_eq!(found, *expected, "{name}");
    }
}
