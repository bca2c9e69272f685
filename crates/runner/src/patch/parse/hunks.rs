//! Hunks: their headers, and how far they reach.

use super::cursor::Cursor;
use super::{Claim, ParseError, Parser, offset};
use crate::patch::hunk::HunkRecord;

/// The numbers of an `@@ -1,2 +3,4 @@` line, saturated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkHeader {
    old_start: u64,
    old_lines: u64,
    new_start: u64,
    new_lines: u64,
}

/// Common properties of the hunks of a section.
pub(super) struct HunkTotals {
    pub(super) has_old_lines: bool,
}

/// Size of a hunk.
struct HunkExtent {
    bytes: usize,
    ends_in_change: bool,
    has_marker: bool,
}

// === impl HunkHeader ===

impl HunkHeader {
    /// Reads a whole line; text after the second `@@` is of no interest.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n")?;
        let (old_start, old_lines, rest) = range(line.strip_prefix(b"@@ -")?)?;
        let (new_start, new_lines, rest) = range(rest.strip_prefix(b" +")?)?;
        rest.strip_prefix(b" @@")?;
        Some(Self { old_start, old_lines, new_start, new_lines })
    }

    /// Zero-based line where the hunk is expected. Cut to 32 bits as git does it, negative beyond.
    fn expected(self) -> i32 {
        self.new_start.saturating_sub(1) as u32 as i32
    }
}

// === impl Parser ===

impl Parser<'_> {
    /// Reads all hunks up to the next line that isn't one.
    pub(super) fn hunks(&mut self, claim: Claim) -> Result<HunkTotals, ParseError> {
        let mut totals = HunkTotals { has_old_lines: false };
        while self.cursor.rest().len() > 4 && self.cursor.rest().starts_with(b"@@ -") {
            if self.patch.hunks.len() == self.limits.hunks {
                let (line, max) = (self.cursor.line_number(), self.limits.hunks);
                return Err(ParseError::TooLarge { line, what: "hunks", max });
            }
            let record = self.hunk(claim)?;
            totals.has_old_lines |= record.old_lines > 0;
            self.patch.hunks.push(record);
        }
        Ok(totals)
    }

    fn hunk(&mut self, claim: Claim) -> Result<HunkRecord, ParseError> {
        let line = self.cursor.peek().unwrap_or_default();
        let Some(header) = HunkHeader::read(line) else {
            return Err(self.malformed(line, "`@@ -start,count +start,count @@`"));
        };
        if claim == Claim::Create && header.old_lines > 0 {
            return Err(
                self.malformed(line, "no old lines (`@@ -0,0 +1,count @@`) for a file that is created")
            );
        }
        if claim == Claim::Delete && header.new_lines > 0 {
            return Err(
                self.malformed(line, "no new lines (`@@ -1,count +0,0 @@`) for a file that is deleted")
            );
        }
        let diff_line = self.cursor.line_number();
        self.cursor.step_over(line);
        let body_at = offset(self.cursor.offset());
        let extent = self.hunk_extent(header)?;
        // The counts fit: that many lines were just seen in a diff whose size does.
        Ok(HunkRecord {
            body_at,
            body_len: offset(extent.bytes),
            diff_line,
            old_start: u32::try_from(header.old_start).unwrap_or(u32::MAX),
            expected: header.expected(),
            old_lines: header.old_lines as u32,
            new_lines: header.new_lines as u32,
            ends_in_change: extent.ends_in_change,
            has_marker: extent.has_marker,
        })
    }

    /// Steps over as many lines as the header counts, no more and no fewer.
    fn hunk_extent(&mut self, header: HunkHeader) -> Result<HunkExtent, ParseError> {
        let start = self.cursor.offset();
        let (mut old, mut new) = (header.old_lines, header.new_lines);
        let mut extent = HunkExtent { bytes: 0, ends_in_change: false, has_marker: false };
        let mut has_change = false;
        while old > 0 || new > 0 {
            let line = self.cursor.peek_whole().unwrap_or_default();
            let (takes_old, takes_new) = match line.first() {
                Some(b' ' | b'\n') => (1, 1),
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                Some(b'\\') if is_marker(line) => (0, 0),
                _ => {
                    return Err(self.malformed(
                        line,
                        "a line that starts with ` `, `-`, `+` or `\\ `, as the hunk header counts more",
                    ));
                }
            };
            if takes_old > old || takes_new > new {
                return Err(self.malformed(line, "as many old and new lines as the hunk header counts"));
            }
            old -= takes_old;
            new -= takes_new;
            if takes_old + takes_new == 0 {
                extent.has_marker = true;
            } else {
                extent.ends_in_change = takes_old != takes_new;
                has_change |= extent.ends_in_change;
            }
            self.cursor.step_over(line);
        }
        if !has_change {
            let line = self.cursor.peek().unwrap_or_default();
            return Err(self.malformed(line, "a hunk with at least one `-` or `+` line"));
        }
        extent.has_marker |= step_over_last_marker(&mut self.cursor);
        extent.bytes = self.cursor.offset() - start;
        Ok(extent)
    }
}

/// `\ No newline at end of file` in any language; git wants at least 12 bytes, newline included.
fn is_marker(line: &[u8]) -> bool {
    line.len() >= 12 && line.starts_with(b"\\ ")
}

/// A marker behind the last counted line. Here git asks for more than 12 bytes up to the end of the *diff*.
fn step_over_last_marker(cursor: &mut Cursor<'_>) -> bool {
    let is_there = cursor.rest().len() > 12 && cursor.rest().starts_with(b"\\ ");
    if is_there {
        cursor.advance();
    }
    is_there
}

/// `start` or `start,count`.
fn range(text: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => number(rest).map(|(count, rest)| (start, count, rest)),
        None => Some((start, 1, rest)),
    }
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let value = digits
        .iter()
        .fold(0u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    (end > 0).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(line: &str) -> Option<(u64, u64, u64, u64)> {
        HunkHeader::read(line.as_bytes())
            .map(|read| (read.old_start, read.old_lines, read.new_start, read.new_lines))
    }

    #[test]
    fn a_count_that_is_left_out_is_one() {
        assert_eq!(header("@@ -3 +4,5 @@ fn x() {\n"), Some((3, 1, 4, 5)));
        assert_eq!(header("@@ -3,0 +4 @@\n"), Some((3, 0, 4, 1)));
    }

    #[test]
    fn numbers_that_overflow_are_saturated() {
        assert_eq!(header("@@ -99999999999999999999 +1 @@\n"), Some((u64::MAX, 1, 1, 1)));
    }

    #[test]
    fn malformed_hunk_header_is_not_recognized() {
        for line in [
            "@@ -1 +1 @@",
            "@@ --1 +1 @@\n",
            "@@ -1, +1 @@\n",
            "@@ -1 +1\n",
            "@@ -1,2 3,4 @@\n",
            "@@ -1  +1 @@\n",
            "@@@ -1 -1 +1 @@@\n",
        ] {
            assert_eq!(header(line), None, "{line:?}");
        }
    }

    #[test]
    fn out_of_range_hunk_position_is_truncated_to_32_bits() {
        let at = |new_start| HunkHeader { old_start: 1, old_lines: 1, new_start, new_lines: 1 }.expected();
        assert_eq!(at(0), 0);
        assert_eq!(at(7), 6);
        assert_eq!(at((1 << 32) + 1), 0);
        assert!(at(1 << 40) < 0 || at(1 << 40) == -1);
        assert!(at(u64::MAX) < 0);
    }
}
