//! Walks over the lines of a diff and counts them.

/// A place between two lines of a diff.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    diff: &'a [u8],
    at: usize,
    line_number: u32,
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    pub(super) fn new(diff: &'a [u8]) -> Self {
        Self { diff, at: 0, line_number: 1 }
    }

    /// The line here with its newline, which only the last line may lack; `None` at the end.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        (len > 0).then(|| &rest[..len])
    }

    /// The line here if it is whole, newline included.
    pub(super) fn peek_whole(&self) -> Option<&'a [u8]> {
        self.peek().filter(|line| line.ends_with(b"\n"))
    }

    /// Steps over `line`, which must be the one here.
    pub(super) fn step_over(&mut self, line: &[u8]) {
        self.at += line.len();
        self.line_number += 1;
    }

    /// Steps over the line here.
    pub(super) fn advance(&mut self) {
        if let Some(line) = self.peek() {
            self.step_over(line);
        }
    }

    /// Everything from here on.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.diff[self.at..]
    }

    /// Offset in the diff.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// 1-based number of the line here.
    pub(super) fn line_number(&self) -> u32 {
        self.line_number
    }
}
