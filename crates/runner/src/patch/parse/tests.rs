//! Each rule of how a diff is read.

use super::*;

fn parsed(diff: &str) -> Patch<'_> {
    parse(diff.as_bytes()).unwrap()
}

fn malformed(diff: &str) -> (u32, String) {
    match parse(diff.as_bytes()).unwrap_err() {
        ParseError::Malformed { line, found, .. } => (line, found.as_str().to_owned()),
        error => panic!("{error}"),
    }
}

fn names(diff: &str) -> Vec<(Claim, &'static str, String)> {
    let files = parsed(diff).files;
    let described = files.iter().map(|file| match &file.names {
        Names::New(new) => (file.claim, "new", new.to_string()),
        Names::Old(old) => (file.claim, "old", old.to_string()),
        Names::Both { old, new } => (file.claim, "both", format!("{old} {new}")),
    });
    described.collect()
}

fn one(claim: Claim, which: &'static str, name: &str) -> Vec<(Claim, &'static str, String)> {
    vec![(claim, which, name.to_owned())]
}

const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn a_git_section_is_read() {
    let diff = format!("diff --git a/x b/x\nindex 1..2 100755\n--- a/x\n+++ b/x\n{HUNK}");
    let patch = parsed(&diff);
    let [file] = patch.files() else { panic!("{patch:?}") };
    assert_eq!((file.line, file.claim), (1, Claim::Edit));
    assert_eq!((file.old_mode, file.new_mode), (Some(FileMode::Executable), None));
    assert_eq!(patch.hunks(file).len(), 1);
    assert_eq!(patch.hunks(file).get(0).diff_line(), 5);
}

#[test]
fn claims_come_from_git_headers() {
    let header = "diff --git a/x b/x\n";
    assert_eq!(names(&format!("{header}new file mode 100644\n\n\n\n\n\n\n")), one(Claim::Create, "new", "x"));
    assert_eq!(names(&format!("{header}deleted file mode 100644\n")), one(Claim::Delete, "old", "x"));
    let header = "diff --git a/x b/y\nsimilarity index 100%\n";
    assert_eq!(names(&format!("{header}rename from x\nrename to y\n")), one(Claim::Rename, "both", "x y"));
    assert_eq!(names(&format!("{header}rename old x\nrename new y\n")), one(Claim::Rename, "both", "x y"));
    assert_eq!(names(&format!("{header}copy from x\ncopy to y\n")), one(Claim::Copy, "both", "x y"));
}

#[test]
fn claims_come_from_plain_headers() {
    assert_eq!(names("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"), one(Claim::Create, "new", "x"));
    assert_eq!(names("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"), one(Claim::Delete, "old", "x"));
    assert_eq!(names("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"), one(Claim::EditOrCreate, "both", "x x"));
    assert_eq!(names(&format!("--- a/x\n+++ b/x\n{HUNK}")), one(Claim::Edit, "both", "x x"));
    let epoch = "1970-01-01 00:00:00.000000000 +0000";
    assert_eq!(
        names(&format!("--- a/x\t{epoch}\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")),
        one(Claim::Create, "new", "x")
    );
    assert_eq!(
        names(&format!("--- a/x\n+++ b/x\t{epoch}\n@@ -1 +0,0 @@\n-a\n")),
        one(Claim::Delete, "old", "x")
    );
}

#[test]
fn plain_names_agree_on_the_shorter() {
    assert_eq!(names(&format!("--- a/x.orig\n+++ b/x\n{HUNK}")), one(Claim::Edit, "both", "x x"));
    assert_eq!(names(&format!("--- a/x\n+++ b/x.orig\n{HUNK}")), one(Claim::Edit, "both", "x x"));
}

#[test]
fn bare_name_disables_prefix_stripping_for_later_sections() {
    let section = |name: &str| format!("--- {name}\n+++ {name}\n{HUNK}");
    assert_eq!(names(&section("x")), one(Claim::Edit, "both", "x x"));
    let read = names(&(section("a/x") + &section("y") + &section("a/z")));
    assert_eq!(
        read.iter().map(|(_, _, names)| names.as_str()).collect::<Vec<_>>(),
        ["x x", "y y", "a/z a/z"]
    );
}

#[test]
fn bare_name_before_dev_null_keeps_prefix_stripping() {
    assert_eq!(malformed("--- x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").0, 1);
}

#[test]
fn text_between_sections_is_skipped() {
    let diff = format!(
        "From 0123\nSubject: x\n---\n x | 1 +\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n{HUNK} more\n-- \n2.47\n"
    );
    assert_eq!(names(&diff), one(Claim::Edit, "both", "x x"));
}

#[test]
fn a_diff_without_sections_is_refused() {
    for diff in
        ["", "\n", "garbage\n", "--- a/x\n+++ b/x\n", "1,3d2\n< a\n", "*** a/x\n--- b/x\n***************\n"]
    {
        assert!(matches!(parse(diff.as_bytes()), Err(ParseError::Empty { .. })), "{diff:?}");
    }
}

#[test]
fn a_hunk_without_a_header_is_refused() {
    assert_eq!(malformed(HUNK), (1, "\"@@ -1 +1 @@\"".to_owned()));
    assert_eq!(malformed(&format!("--- a/x\n+++ b/x\n{HUNK} surplus\n{HUNK}")).0, 7);
}

#[test]
fn git_header_without_a_change_is_refused() {
    assert_eq!(malformed("diff --git a/x b/x\nindex 1..2 100644\n").0, 3);
    assert_eq!(malformed("diff --git a/x b/x\nold mode 100644\nnew mode 100644\n").0, 4);
}

#[test]
fn contradictory_headers_are_refused() {
    for lines in [
        "new file mode 100644\ndeleted file mode 100644\n",
        "rename from x\ncopy to y\n",
        "--- a/x\n+++ b/x\n+++ b/y\n",
        "new file mode 100644\n--- a/x\n",
        "old mode 100644x\n",
        "old mode x\n",
        "rename from x\nrename to \n",
    ] {
        malformed(&format!("diff --git a/x b/x\n{lines}{HUNK}"));
    }
}

#[test]
fn hunks_must_hold_the_lines_they_count() {
    for (hunk, line) in [
        ("@@ -1,2 +1 @@\n-a\n+b\n", 6),
        ("@@ -1 +1 @@\n-a\n-b\n", 5),
        ("@@ -1 +1 @@\n-a\n", 5),
        ("@@ -1 +1 @@\n-a\n+b", 5),
        ("@@ -1 +1 @@\n-a\nx\n", 5),
        ("@@ -1,2 +1,2 @@\n a\n b\n", 6),
        ("@@ -0,0 +0,0 @@\n", 4),
        ("@@ -1 +1 @@\n-a\n\\ short\n+b\n", 5),
        ("@@ -1,18446744073709551616 +1 @@\n-a\n+b\n", 6),
        ("@@ -1,-1 +1 @@\n-a\n+b\n", 3),
        ("@@ x @@@@@@@@\n-a\n+b\n", 3),
    ] {
        let diff = format!("--- a/x\n+++ b/x\n{}", hunk.replacen("@@ x", "@@ -x", 1));
        assert_eq!(malformed(&diff).0, line, "{hunk:?}");
    }
}

#[test]
fn created_and_deleted_files_have_one_side() {
    malformed(&format!("--- /dev/null\n+++ b/x\n{HUNK}"));
    malformed(&format!("--- a/x\n+++ /dev/null\n{HUNK}"));
}

#[test]
fn policy_refusals_are_distinguished_from_malformed_diffs() {
    let header = "diff --git a/x b/x\n";
    for diff in [
        format!("{header}old mode 120000\nnew mode 100644\n"),
        format!("{header}new file mode 120000\n"),
        format!("{header}new file mode 160000\n"),
        format!("{header}old mode 100644\nnew mode 104755\n"),
        format!("{header}index 1..2 120000\n{HUNK}"),
        format!(
            "{header}index 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n"
        ),
        format!("{header}index 1..2 100644\nBinary files a/x and b/x differ\n"),
        format!("--- a/x\n+++ b/x\n{HUNK}Binary files a/y and b/y differ\n"),
        format!("--- a/../x\n+++ b/../x\n{HUNK}"),
        format!("--- /etc/x\n+++ /etc/x\n{HUNK}"),
        format!("--- a/.git/config\n+++ b/.git/config\n{HUNK}"),
        format!("--- a/x\n+++ \"b/\\000x\"\n{HUNK}"),
        format!("--- a/x\n+++ \"b/\\377\"\n{HUNK}"),
        format!("{header}--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"),
        "diff --git a/x b/x\ncopy from ../x\ncopy to y\n".to_owned(),
        "diff --git a/x b/x\nrename from x\nrename to d/../../y\n".to_owned(),
    ] {
        let refused = parse(diff.as_bytes()).unwrap_err();
        assert!(refused.is_policy(), "{diff}: {refused}");
    }
}

#[test]
fn parse_errors_name_line_cause_and_accepted_input() {
    let refused = parse(b"--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n*c\n").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "line 6: found \"*c\"; accepted: a line that starts with ` `, `-`, `+` or `\\ `, as the hunk header counts more"
    );
    let refused = parse(b"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n").unwrap_err();
    assert_eq!(refused.to_string(), "line 1: path escapes workspace: \"b/../x\"");
}

#[test]
fn exceeded_patch_limits_are_errors() {
    let limits = Limits { diff_bytes: 200, files: 2, hunks: 3, ..Limits::default() };
    let what = |diff: &str| match parse_within(diff.as_bytes(), &limits) {
        Err(ParseError::TooLarge { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(&"x".repeat(201)), "bytes");
    let section = format!("--- a/x\n+++ b/x\n{HUNK}");
    assert_eq!(what(&section.repeat(3)), "files");
    assert_eq!(what(&format!("{section}{}", HUNK.repeat(3))), "hunks");
}
