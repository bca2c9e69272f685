//! Each rule of how hunks meet a file.

use super::*;
use crate::patch::parse::parse;

/// Applies `hunks` to `before`; the new text and, for each hunk, the line where it went.
fn patched(before: &str, hunks: &str) -> Result<(String, Vec<u32>), ApplyError> {
    let diff = format!("--- a/x\n+++ b/x\n{hunks}");
    let patch = parse(diff.as_bytes()).unwrap();
    let applied = apply(before.as_bytes(), patch.hunks(&patch.files()[0]), &mut WorkBudget::new(1_000))?;
    let lines = applied.places.iter().map(|place| place.line).collect();
    Ok((String::from_utf8(applied.bytes).unwrap(), lines))
}

fn text(before: &str, hunks: &str) -> String {
    patched(before, hunks).unwrap().0
}

fn assert_no_match(before: &str, hunks: &str) {
    let refused = patched(before, hunks).unwrap_err();
    assert!(matches!(refused, ApplyError::NoMatch { .. }), "{refused}");
}

#[test]
fn hunk_at_its_stated_line_is_applied_there() {
    let applied = patched("a\nb\nc\nd\n", "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n").unwrap();
    assert_eq!(applied, ("a\nB\nBB\nc\nd\n".to_owned(), vec![1]));
}

#[test]
fn later_of_two_equally_near_positions_is_used() {
    let before = "x\na\nx\nx\nx\na\nx\n";
    assert_eq!(text(before, "@@ -3,3 +3,3 @@\n x\n-a\n+b\n x\n"), "x\na\nx\nx\nx\nb\nx\n");
}

#[test]
fn nearest_matching_position_is_used() {
    let before = "x\na\nx\n-\n-\n-\nx\na\nx\n";
    assert_eq!(text(before, "@@ -3,3 +3,3 @@\n x\n-a\n+b\n x\n"), "x\nb\nx\n-\n-\n-\nx\na\nx\n");
}

#[test]
fn an_offset_is_reported() {
    let diff = b"--- a/x\n+++ b/x\n@@ -2,2 +2,2 @@\n-a\n+b\n c\n";
    let patch = parse(diff).unwrap();
    let applied = apply(b"1\n2\n3\na\nc\n", patch.hunks(&patch.files()[0]), &mut WorkBudget::new(9)).unwrap();
    assert_eq!(applied.places, [HunkPlace { diff_line: 3, expected_line: 2, line: 4 }]);
    assert_eq!(applied.places[0].offset(), 2);
}

#[test]
fn the_new_line_number_is_where_the_search_starts() {
    // The old number would lead to the first place.
    let before = "x\na\ny\nx\na\ny\n";
    assert_eq!(text(before, "@@ -2,2 +5,2 @@\n-a\n+b\n y\n"), "x\na\ny\nx\nb\ny\n");
}

#[test]
fn a_later_hunk_counts_the_lines_of_earlier_ones() {
    let before = "a\nb\nc\nd\nc\nd\n";
    let hunks = "@@ -1,2 +1,4 @@\n a\n+1\n+2\n b\n@@ -5,2 +7,2 @@\n-c\n+C\n d\n";
    assert_eq!(patched(before, hunks).unwrap(), ("a\n1\n2\nb\nc\nd\nC\nd\n".to_owned(), vec![1, 7]));
}

#[test]
fn a_hunk_from_line_one_must_match_at_the_start() {
    let hunk = "@@ -1,2 +1,2 @@\n-a\n+b\n c\n";
    assert_eq!(text("a\nc\n", hunk), "b\nc\n");
    assert_no_match("x\na\nc\n", hunk);
}

#[test]
fn a_hunk_that_ends_in_a_change_must_match_at_the_end() {
    let hunk = "@@ -2,2 +2,2 @@\n c\n-a\n+b\n";
    assert_eq!(text("x\ny\nc\na\n", hunk), "x\ny\nc\nb\n");
    assert_no_match("x\nc\na\ny\n", hunk);
}

#[test]
fn a_hunk_without_old_lines_goes_to_the_end_of_the_file() {
    assert_eq!(text("", "@@ -0,0 +1 @@\n+a\n"), "a\n");
    assert_no_match("x\n", "@@ -0,0 +1 @@\n+a\n");
    assert_no_match("x\n", "@@ -1,0 +2 @@\n+a\n");
    // Not where `-U0` meant it to go, but that's where git puts it.
    assert_eq!(text("x\ny\nz\n", "@@ -2,0 +3 @@\n+a\n"), "x\ny\nz\na\n");
}

#[test]
fn lines_written_by_a_hunk_are_never_matched_again() {
    let hunk = "@@ -2,3 +2,3 @@\n a\n-b\n+b\n c\n";
    assert_eq!(patched("-\na\nb\nc\na\nb\nc\n", &hunk.repeat(2)).unwrap().1, [2, 5]);
    assert_no_match("-\na\nb\nc\na\nb\nc\n", &hunk.repeat(3));
}

#[test]
fn hunks_that_share_context_overlap() {
    assert_no_match("-\na\nb\nc\n", "@@ -2,2 +2,2 @@\n-a\n+A\n b\n@@ -3,2 +3,2 @@\n b\n-c\n+C\n");
}

#[test]
fn hunks_may_come_in_any_order() {
    let before = "-\na\nb\n-\nc\nd\n-\n";
    let hunks = "@@ -5,2 +5,3 @@\n-c\n+C\n+C\n d\n@@ -2,2 +2,1 @@\n-a\n b\n@@ -7 +7,2 @@\n+e\n -\n";
    assert_eq!(text(before, hunks), "-\nb\n-\nC\nC\nd\ne\n-\n");
}

#[test]
fn the_end_of_the_file_moves_as_hunks_remove_it() {
    assert_eq!(text("a\nb\n", "@@ -9 +9,0 @@\n-b\n@@ -8 +8 @@\n-a\n+c\n"), "c\n");
}

#[test]
fn a_missing_newline_is_kept_added_and_removed() {
    const MARK: &str = "\\ No newline at end of file\n";
    assert_eq!(text("a\nb", &format!("@@ -1,2 +1,2 @@\n-a\n+A\n b\n{MARK}")), "A\nb");
    assert_eq!(text("a", &format!("@@ -1 +1 @@\n-a\n{MARK}+b\n")), "b\n");
    assert_eq!(text("a\n", &format!("@@ -1 +1 @@\n-a\n+b\n{MARK}")), "b");
}

#[test]
fn a_missing_newline_is_a_difference_at_the_end() {
    assert_no_match("a", "@@ -1 +1 @@\n-a\n+b\n");
    assert_no_match("a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n");
    assert_no_match("x\na", "@@ -2,2 +2,2 @@\n x\n-a\n+b\n");
}

#[test]
fn context_line_without_a_newline_matches_an_inner_line() {
    let hunk = "@@ -1,2 +1,2 @@\n-a\n+b\n foo\n\\ No newline at end of file\n";
    assert_eq!(text("a\nfoo\nbar\n", hunk), "b\nfoobar\n");
    assert_eq!(text("a\nfoo \r\nbar\n", hunk), "b\nfoobar\n");
    assert_no_match("a\nfood\nbar\n", hunk);
}

#[test]
fn carriage_returns_are_part_of_a_line() {
    assert_eq!(text("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+c\r\n b\r\n"), "c\r\nb\r\n");
    assert_no_match("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n");
}

#[test]
fn a_search_ends_with_the_budget() {
    let before = "x\n".repeat(2_000);
    let refused = patched(&before, "@@ -9,2 +9,2 @@\n-a\n+b\n c\n").unwrap_err();
    assert_eq!(refused, ApplyError::TooMuchWork { diff_line: 3 });
}

#[test]
fn a_hunk_larger_than_the_file_matches_nowhere() {
    assert_no_match("a\n", "@@ -2,3 +2,3 @@\n a\n-b\n+c\n d\n");
    assert_no_match("", "@@ -1 +1 @@\n-a\n+b\n");
}
