//! Each rule of how a whole patch becomes a plan.

use std::collections::BTreeMap;

use super::*;
use crate::patch::parse::parse;

/// A tree in memory: names that end in `/` are directories, in `@` symlinks, in `|` FIFOs.
struct MemoryTree(BTreeMap<&'static str, &'static str>);

impl MemoryTree {
    fn of(entries: &[(&'static str, &'static str)]) -> Self {
        Self(entries.iter().copied().collect())
    }
}

impl FileTree for MemoryTree {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        let path = path.as_str();
        let (mode, bytes) = match (self.0.get(path), self.0.get(format!("{path}*").as_str())) {
            (Some(bytes), _) => (FileMode::Plain, bytes),
            (None, Some(bytes)) => (FileMode::Executable, bytes),
            (None, None) => {
                let is_directory = self.0.keys().any(|name| name.starts_with(&format!("{path}/")));
                let is_below_link = path
                    .match_indices('/')
                    .any(|(end, _)| self.0.contains_key(format!("{}@", &path[..end]).as_str()));
                return Ok(if is_below_link || self.0.contains_key(format!("{path}@").as_str()) {
                    Some(FileTreeEntry::Symlink)
                } else if self.0.contains_key(format!("{path}|").as_str()) {
                    Some(FileTreeEntry::Special)
                } else {
                    is_directory.then_some(FileTreeEntry::Directory)
                });
            }
        };
        Ok(Some(FileTreeEntry::File { mode, bytes: bytes.as_bytes().to_vec() }))
    }

    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        let prefix = format!("{directory}/");
        let mut children: Vec<Vec<u8>> = self
            .0
            .keys()
            .filter_map(|name| name.strip_prefix(&prefix)?.split('/').next())
            .filter(|child| !child.is_empty())
            .map(|child| child.trim_end_matches(['*', '@', '|']).as_bytes().to_vec())
            .collect();
        children.dedup();
        Ok(children)
    }
}

fn planned(tree: &[(&'static str, &'static str)], diff: &str) -> Result<Plan, PlanError> {
    plan(&parse(diff.as_bytes()).unwrap(), &mut MemoryTree::of(tree))
}

/// Each change as one line: the path, what happens, the mode if executable, the content.
fn summary(tree: &[(&'static str, &'static str)], diff: &str) -> Vec<String> {
    let plan = planned(tree, diff).unwrap();
    let lines = plan.changes.iter().map(|change| {
        let what = match &change.what {
            FileChangeKind::Renamed { from } => format!("renamed from {from}"),
            FileChangeKind::Copied { from } => format!("copied from {from}"),
            what => format!("{what:?}").to_lowercase(),
        };
        let after = match &change.after {
            None => String::new(),
            Some(after) => {
                let mark = if after.mode.is_executable() { "*" } else { "" };
                match &after.content {
                    Content::Bytes(bytes) => format!("{mark} {:?}", str::from_utf8(bytes).unwrap()),
                    Content::Before(name) => format!("{mark} = {name}"),
                }
            }
        };
        format!("{}: {what}{after}", change.path)
    });
    let removed = plan.removed.iter().map(|path| format!("-{path}"));
    lines.chain(removed).collect()
}

fn unfit(tree: &[(&'static str, &'static str)], diff: &str) -> SectionMismatch {
    match planned(tree, diff).unwrap_err() {
        PlanError::Unfit { reason, .. } => reason,
        error => panic!("{error}"),
    }
}

fn refused(tree: &[(&'static str, &'static str)], diff: &str) -> Refusal {
    match planned(tree, diff).unwrap_err() {
        PlanError::Refused { reason, .. } => reason,
        error => panic!("{error}"),
    }
}

fn edit(path: &str, old: &str, new: &str) -> String {
    format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n")
}

fn create(path: &str, line: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    )
}

fn delete(path: &str, line: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{line}\n"
    )
}

fn relocate(verb: &str, from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\n{verb} from {from}\n{verb} to {to}\n")
}

#[test]
fn each_patch_claim_results_in_a_change() {
    let tree = [("e", "1\n"), ("d", "1\n"), ("r", "1\n"), ("s", "1\n"), ("m", "1\n"), ("x*", "1\n")];
    let diff = [
        edit("e", "1", "2"),
        delete("d", "1"),
        relocate("rename", "r", "to/r"),
        relocate("copy", "s", "s2"),
        "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n".to_owned(),
        edit("x", "1", "2"),
        create("c", "3"),
        "diff --git a/empty b/empty\nnew file mode 100755\n".to_owned(),
    ];
    let expected = [
        "e: modified \"2\\n\"",
        "d: deleted",
        "to/r: renamed from r = r",
        "s2: copied from s = s",
        "m: modechanged* = m",
        "x: modified* \"2\\n\"",
        "c: created \"3\\n\"",
        "empty: created* \"\"",
        "-d",
        "-r",
    ];
    assert_eq!(summary(&tree, &diff.concat()), expected);
}

#[test]
fn a_rename_may_change_the_file() {
    let diff = "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n";
    assert_eq!(summary(&[("x", "1\n")], diff), ["y: renamed from x \"2\\n\"", "-x"]);
}

#[test]
fn section_with_two_names_is_a_rename_without_rename_headers() {
    let diff = "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n";
    assert_eq!(summary(&[("x", "1\n"), ("y", "gone\n")], diff), ["y: renamed from x \"2\\n\"", "-x"]);
}

#[test]
fn files_can_be_swapped() {
    let diff = relocate("rename", "x", "y") + &relocate("rename", "y", "x");
    assert_eq!(
        summary(&[("x", "1\n"), ("y", "2\n")], &diff),
        ["y: renamed from x = x", "x: renamed from y = y"]
    );
}

#[test]
fn chained_renames_read_the_original_files() {
    let diff = relocate("rename", "x", "y") + &relocate("rename", "y", "z");
    let expected = ["y: renamed from x = x", "z: renamed from y = y", "-x"];
    assert_eq!(summary(&[("x", "1\n"), ("y", "2\n")], &diff), expected);
    assert_eq!(unfit(&[("x", "1\n")], &diff), SectionMismatch::Missing);
}

#[test]
fn a_copy_reads_its_source_as_it_was() {
    let diff = edit("x", "1", "2") + &relocate("copy", "x", "y");
    assert_eq!(summary(&[("x", "1\n")], &diff), ["x: modified \"2\\n\"", "y: copied from x = x"]);
}

#[test]
fn sections_about_one_file_add_up() {
    let diff = edit("x", "1", "2") + &edit("x", "2", "3");
    let plan = planned(&[("x", "1\n")], &diff).unwrap();
    assert_eq!(plan.changes.len(), 1);
    assert_eq!(plan.changes[0].hunks.iter().map(|place| place.diff_line).collect::<Vec<_>>(), [4, 10]);
    assert_eq!(summary(&[("x", "1\n")], &diff), ["x: modified \"3\\n\""]);
    let diff = create("x", "1") + &edit("x", "1", "2");
    assert_eq!(summary(&[], &diff), ["x: created \"2\\n\""]);
    let diff = relocate("rename", "x", "y") + &edit("y", "1", "2");
    assert_eq!(summary(&[("x", "1\n")], &diff), ["y: renamed from x \"2\\n\"", "-x"]);
    let diff = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n".to_owned() + &edit("x", "1", "2");
    assert_eq!(summary(&[("x", "1\n")], &diff), ["x: modified* \"2\\n\""]);
}

#[test]
fn file_removed_by_an_earlier_section_is_missing() {
    assert_eq!(unfit(&[("x", "1\n")], &(delete("x", "1") + &edit("x", "1", "2"))), SectionMismatch::Gone);
    assert_eq!(
        unfit(&[("x", "1\n")], &(relocate("rename", "x", "y") + &delete("x", "1"))),
        SectionMismatch::Gone
    );
}

#[test]
fn a_deleted_file_may_be_created_anew_in_any_order() {
    let expected = ["x: modified \"2\\n\""];
    assert_eq!(summary(&[("x", "1\n")], &(delete("x", "1") + &create("x", "2"))), expected);
    // The deletion comes second and finds what was created.
    assert_eq!(summary(&[("x", "1\n")], &(create("x", "2") + &delete("x", "2"))), expected);
}

#[test]
fn an_edited_file_survives_its_deletion_as_with_git() {
    assert_eq!(
        summary(&[("x", "1\n")], &(edit("x", "1", "2") + &delete("x", "2"))),
        ["x: modified \"2\\n\""]
    );
}

#[test]
fn edit_of_missing_and_creation_of_existing_file_are_refused() {
    assert_eq!(unfit(&[], &edit("x", "1", "2")), SectionMismatch::Missing);
    assert_eq!(unfit(&[], &delete("x", "1")), SectionMismatch::Missing);
    assert_eq!(unfit(&[("x", "1\n")], &create("x", "1")), SectionMismatch::Exists);
    assert_eq!(unfit(&[("x", "1\n"), ("y", "1\n")], &relocate("rename", "x", "y")), SectionMismatch::Exists);
    assert_eq!(unfit(&[("x", "1\n"), ("y", "1\n")], &relocate("copy", "x", "y")), SectionMismatch::Exists);
}

#[test]
fn a_deletion_must_remove_every_line() {
    assert!(matches!(unfit(&[("x", "1\n2\n")], &delete("x", "1")), SectionMismatch::Hunk(_)));
    let bare = "diff --git a/x b/x\ndeleted file mode 100644\n";
    assert_eq!(unfit(&[("x", "1\n")], bare), SectionMismatch::Remains);
    assert_eq!(summary(&[("x", "")], bare), ["x: deleted", "-x"]);
}

#[test]
fn a_plain_diff_that_only_adds_creates_a_missing_file() {
    let diff = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    assert_eq!(summary(&[], diff), ["x: created \"1\\n\""]);
    assert_eq!(summary(&[("x", "")], diff), ["x: modified \"1\\n\""]);
    assert!(matches!(unfit(&[("x", "2\n")], diff), SectionMismatch::Hunk(_)));
}

#[test]
fn a_plain_diff_that_removes_all_lines_leaves_an_empty_file() {
    assert_eq!(summary(&[("x", "1\n")], "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-1\n"), ["x: modified \"\""]);
}

#[test]
fn a_file_may_replace_the_directory_that_the_patch_empties() {
    let diff = create("d", "1") + &delete("d/x", "1") + &relocate("rename", "d/e/y", "y");
    let expected = ["d: created \"1\\n\"", "d/x: deleted", "y: renamed from d/e/y = d/e/y", "-d/x", "-d/e/y"];
    assert_eq!(summary(&[("d/x", "1\n"), ("d/e/y", "2\n")], &diff), expected);
    assert_eq!(unfit(&[("d/x", "1\n"), ("d/e/y", "2\n"), ("d/z", "")], &diff), SectionMismatch::Directory);
    assert_eq!(summary(&[("d/", "")], &create("d", "1")), ["d: created \"1\\n\""]);
    assert_eq!(unfit(&[("d/e/", "")], &create("d", "1")), SectionMismatch::Directory);
    // A path named `.git` can't be in a patch, so it can't have been emptied.
    assert_eq!(unfit(&[("d/.git", "")], &create("d", "1")), SectionMismatch::Directory);
}

#[test]
fn a_directory_may_replace_the_file_that_the_patch_removes() {
    let diff = create("d/x", "1") + &delete("d", "1");
    assert_eq!(summary(&[("d", "1\n")], &diff), ["d/x: created \"1\\n\"", "d: deleted", "-d"]);
    assert!(matches!(unfit(&[("d", "1\n")], &create("d/x", "1")), SectionMismatch::FileAbove { .. }));
    assert!(matches!(
        unfit(&[("d", "1\n")], &(create("d/x", "1") + &edit("d", "1", "2"))),
        SectionMismatch::FileAbove { .. }
    ));
}

#[test]
fn a_patch_may_not_need_one_name_for_a_file_and_a_directory() {
    let (file, below) = (create("d", "1"), create("d/x", "1"));
    assert!(matches!(unfit(&[], &(file.clone() + &below)), SectionMismatch::FileAbove { .. }));
    assert!(matches!(unfit(&[], &(below + &file)), SectionMismatch::FileAbove { .. }));
}

#[test]
fn links_directories_and_special_files_are_refused_by_policy() {
    let tree = [("l@", ""), ("f|", ""), ("d/x", "1\n")];
    assert_eq!(refused(&tree, &edit("l", "1", "2")), Refusal::Symlink);
    assert_eq!(refused(&tree, &edit("l/x", "1", "2")), Refusal::Symlink);
    assert_eq!(refused(&tree, &create("l", "1")), Refusal::Symlink);
    assert_eq!(refused(&tree, &create("l/new", "1")), Refusal::Symlink);
    assert_eq!(refused(&tree, &delete("l/x", "1")), Refusal::Symlink);
    assert_eq!(refused(&tree, &relocate("copy", "l/x", "y")), Refusal::Symlink);
    assert_eq!(refused(&tree, &relocate("rename", "d/x", "l/y")), Refusal::Symlink);
    assert_eq!(refused(&tree, &edit("f", "1", "2")), Refusal::SpecialFile);
    assert_eq!(refused(&tree, &create("f", "1")), Refusal::SpecialFile);
    assert_eq!(refused(&tree, &edit("d", "1", "2")), Refusal::Directory);
}

#[test]
fn new_content_is_bounded() {
    let limits = Limits { result_bytes: 10, ..Limits::default() };
    let diff = create("x", "12345") + &create("y", "12345");
    let patch = parse(diff.as_bytes()).unwrap();
    let refused = plan_within(&patch, &mut MemoryTree::of(&[]), &limits).unwrap_err();
    assert!(matches!(refused, PlanError::TooLarge { max: 10, .. }), "{refused}");
}

#[test]
fn unchanged_content_is_not_kept_in_memory() {
    let big: &'static str = "x\n".repeat(1 << 20).leak();
    let diff: String = (0..1000).map(|number| relocate("copy", "x", &format!("y{number}"))).collect();
    let plan = planned(&[("x", big)], &diff).unwrap();
    assert_eq!(plan.changes.len(), 1000);
}

#[test]
fn unreadable_file_is_reported_as_a_read_error() {
    struct UnreadableTree;
    impl FileTree for UnreadableTree {
        fn read(&mut self, _: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
            Err(io::Error::from(io::ErrorKind::FileTooLarge))
        }
        fn children(&mut self, _: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
            Ok(Vec::new())
        }
    }
    let diff = edit("x", "1", "2");
    let error = plan(&parse(diff.as_bytes()).unwrap(), &mut UnreadableTree).unwrap_err();
    assert!(matches!(&error, PlanError::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge));
    assert_eq!(error.to_string(), "can't read x");
}
