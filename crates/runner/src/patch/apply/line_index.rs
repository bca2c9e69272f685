//! Finds lines by number without a table of all lines.

/// Counts newlines once per block, which SIMD does at memory speed; a line is then found within its block.
#[derive(Debug)]
pub(super) struct LineIndex<'a> {
    text: &'a [u8],
    /// Newlines before each block.
    newlines_before: Vec<u32>,
    lines: usize,
}

// === impl LineIndex ===

impl<'a> LineIndex<'a> {
    const BLOCK_BYTES: usize = 512;

    pub(super) fn new(text: &'a [u8]) -> Self {
        let mut newlines = 0;
        let mut newlines_before = Vec::with_capacity(text.len() / Self::BLOCK_BYTES + 1);
        for block in text.chunks(Self::BLOCK_BYTES) {
            newlines_before.push(u32::try_from(newlines).unwrap_or(u32::MAX));
            newlines += memchr::memchr_iter(b'\n', block).count();
        }
        let is_last_line_open = text.last().is_some_and(|&byte| byte != b'\n');
        Self { text, newlines_before, lines: newlines + usize::from(is_last_line_open) }
    }

    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Number of lines; one without a newline at the end counts.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Offset at which line `line` (from 0) starts; the end of the text if there aren't as many.
    pub(super) fn start_of(&self, line: usize) -> usize {
        if line == 0 || line >= self.lines {
            return if line == 0 { 0 } else { self.text.len() };
        }
        // The line starts behind newline number `line`, counted from 1.
        let block = self.newlines_before.partition_point(|&before| (before as usize) < line) - 1;
        let start = block * Self::BLOCK_BYTES;
        let skipped = line - 1 - self.newlines_before[block] as usize;
        let newline = memchr::memchr_iter(b'\n', &self.text[start..]).nth(skipped);
        newline.map_or(self.text.len(), |newline| start + newline + 1)
    }

    /// Offset of the line after the one that starts at `start`.
    pub(super) fn after(&self, start: usize) -> usize {
        memchr::memchr(b'\n', &self.text[start..]).map_or(self.text.len(), |newline| start + newline + 1)
    }

    /// Offset of the line before the one that starts at `start`, which isn't the first.
    pub(super) fn before(&self, start: usize) -> usize {
        memchr::memrchr(b'\n', &self.text[..start - 1]).map_or(0, |newline| newline + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_any_block() {
        for ending in ["", "\n", "open"] {
            let text: String =
                (0..2000).map(|line| format!("{}\n", "x".repeat(line % 9))).collect::<String>() + ending;
            let index = LineIndex::new(text.as_bytes());
            let starts: Vec<usize> = text
                .split_inclusive('\n')
                .scan(0, |at, line| {
                    let start = *at;
                    *at += line.len();
                    Some(start)
                })
                .collect();
            assert_eq!(index.lines(), starts.len());
            for (line, &start) in starts.iter().enumerate() {
                assert_eq!(index.start_of(line), start);
                assert_eq!(index.after(start), starts.get(line + 1).copied().unwrap_or(text.len()));
                assert!(line == 0 || index.before(start) == starts[line - 1]);
            }
            assert_eq!(index.start_of(starts.len()), text.len());
        }
    }

    #[test]
    fn an_empty_text_has_no_lines() {
        let index = LineIndex::new(b"");
        assert_eq!((index.lines(), index.start_of(0), index.start_of(1)), (0, 0, 0));
    }
}
