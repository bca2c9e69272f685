//! A hunk, viewed in the diff it came from.

/// Position of a hunk in the diff, and its header. 32 bytes, since a diff may hold a million.
#[derive(Debug, Clone, Copy)]
pub(super) struct HunkRecord {
    /// Offset of the first line after the `@@` line.
    pub(super) body_at: u32,
    pub(super) body_len: u32,
    /// 1-based line of the `@@` line in the diff.
    pub(super) diff_line: u32,
    /// First line in the old file, saturated: only 0, 1 and "later" differ.
    pub(super) old_start: u32,
    /// Zero-based line where the hunk is expected; negative for past any file.
    pub(super) expected: i32,
    pub(super) old_lines: u32,
    pub(super) new_lines: u32,
    /// The last counted line is a `-` or `+`, no context follows.
    pub(super) ends_in_change: bool,
    /// Some `\ No newline at end of file` takes a line's end away.
    pub(super) has_marker: bool,
}

/// The hunks of one file, in the order of the diff.
#[derive(Debug, Clone, Copy)]
pub struct Hunks<'a> {
    diff: &'a [u8],
    records: &'a [HunkRecord],
}

/// A hunk; its text is borrowed from the diff.
#[derive(Debug, Clone, Copy)]
pub struct Hunk<'a> {
    record: HunkRecord,
    body: &'a [u8],
}

/// Sides of the change that a line is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffSide {
    /// Unchanged, on both sides.
    Both,
    /// Removed.
    Old,
    /// Added.
    New,
}

/// A line of a hunk: its text ends in a newline unless a `\` line took it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Sides that the line is on.
    pub side: DiffSide,
    /// The line without its first column.
    pub text: &'a [u8],
}

/// Iterates over the lines of a hunk.
#[derive(Debug, Clone)]
pub struct HunkLines<'a> {
    rest: &'a [u8],
}

// === impl Hunks ===

impl<'a> Hunks<'a> {
    pub(super) fn new(diff: &'a [u8], records: &'a [HunkRecord]) -> Self {
        Self { diff, records }
    }

    /// Returns the number of hunks.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if there are none: a section about names and modes only.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Each in turn.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Hunk<'a>> + use<'a> {
        let diff = self.diff;
        self.records.iter().map(move |&record| Hunk::new(record, diff))
    }

    /// Hunk `number`, which must be less than [`len`](Self::len).
    pub(super) fn get(&self, number: usize) -> Hunk<'a> {
        Hunk::new(self.records[number], self.diff)
    }
}

// === impl Hunk ===

impl<'a> Hunk<'a> {
    pub(super) fn new(record: HunkRecord, diff: &'a [u8]) -> Self {
        let start = record.body_at as usize;
        Self { record, body: &diff[start..start + record.body_len as usize] }
    }

    /// 1-based line of the `@@` line in the diff.
    pub fn diff_line(&self) -> u32 {
        self.record.diff_line
    }

    /// First line in the old file, as the header says; 0 for an empty old side.
    pub fn old_start(&self) -> u32 {
        self.record.old_start
    }

    /// Zero-based line of the file being patched where the hunk should fit, or `None` for past its end.
    ///
    /// This is the header's *new* start, since earlier hunks are applied by then. It goes through 32 bits, as
    /// in git, so that an absurd number is searched for from the same place.
    pub(super) fn expected(&self) -> Option<usize> {
        usize::try_from(self.record.expected).ok()
    }

    /// An empty old side or one that starts at line 1 must match at the start of the file.
    pub(super) fn is_anchored_at_start(&self) -> bool {
        self.record.old_start <= 1
    }

    /// Without context after the last change, the hunk must match at the end of the file.
    pub(super) fn is_anchored_at_end(&self) -> bool {
        self.record.ends_in_change
    }

    /// Returns true if every old line certainly ends in a newline.
    pub(super) fn has_whole_lines(&self) -> bool {
        !self.record.has_marker
    }

    /// Lines on the old and on the new side.
    pub(super) fn line_counts(&self) -> (usize, usize) {
        if self.has_whole_lines() {
            return (self.record.old_lines as usize, self.record.new_lines as usize);
        }
        // A marker can make a line vanish, so the header's counts may be off by the number of those.
        self.lines().fold((0, 0), |(old, new), line| {
            (old + usize::from(line.side != DiffSide::New), new + usize::from(line.side != DiffSide::Old))
        })
    }

    /// Upper bound for the bytes of the new side.
    pub(super) fn max_new_bytes(&self) -> usize {
        self.body.len()
    }

    /// The lines in order.
    pub fn lines(&self) -> HunkLines<'a> {
        HunkLines { rest: self.body }
    }

    /// The texts of the old side, which the file must hold for the hunk to match.
    pub(super) fn old_texts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.lines().filter(|line| line.side != DiffSide::New).map(|line| line.text)
    }
}

// === impl HunkLines ===

impl<'a> Iterator for HunkLines<'a> {
    type Item = HunkLine<'a>;

    fn next(&mut self) -> Option<HunkLine<'a>> {
        loop {
            let first = *self.rest.first()?;
            let len = memchr::memchr(b'\n', self.rest).map_or(self.rest.len(), |end| end + 1);
            let (line, rest) = self.rest.split_at(len);
            self.rest = rest;
            let loses_newline = usize::from(rest.first() == Some(&b'\\'));
            let side = match first {
                b' ' => DiffSide::Both,
                b'-' => DiffSide::Old,
                b'+' => DiffSide::New,
                // GNU diff may write an empty context line without its leading space.
                b'\n' if loses_newline == 0 => return Some(HunkLine { side: DiffSide::Both, text: line }),
                // A `\` line was heeded with the line before it; an empty line without its newline is nothing.
                _ => continue,
            };
            return Some(HunkLine { side, text: &line[1..len - loses_newline] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &[u8]) -> Vec<(DiffSide, &[u8])> {
        HunkLines { rest: body }.map(|line| (line.side, line.text)).collect()
    }

    #[test]
    fn a_marker_takes_the_newline_of_the_line_before_it() {
        let body = b" a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n";
        assert_eq!(
            lines(body),
            [(DiffSide::Both, &b"a\n"[..]), (DiffSide::Old, b"b"), (DiffSide::New, b"c")]
        );
    }

    #[test]
    fn an_empty_line_is_empty_context() {
        assert_eq!(lines(b"\n+\n"), [(DiffSide::Both, &b"\n"[..]), (DiffSide::New, b"\n")]);
    }

    #[test]
    fn empty_line_without_a_newline_is_not_a_hunk_line() {
        assert_eq!(lines(b"\n\\ No newline at end of file\n-a\n"), [(DiffSide::Old, &b"a\n"[..])]);
    }

    #[test]
    fn hunk_record_takes_at_most_32_bytes() {
        assert!(size_of::<HunkRecord>() <= 32);
    }
}
