//! Segments: the files with the records, numbered from 1.

use super::record::LONGEST_LINE;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};

/// A line of a segment.
#[derive(Debug)]
pub(super) struct SegmentLine<'a> {
    /// Without the newline.
    pub(super) bytes: &'a [u8],
    /// True if the line ends with a newline.
    pub(super) is_whole: bool,
    /// Counted from 1, from where reading began.
    pub(super) number: u64,
    /// Offset of its end in the file.
    pub(super) end: u64,
}

/// Reads line by line, and no line that is longer than a record can be.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: BufReader<Take<R>>,
    line: Vec<u8>,
    number: u64,
    end: u64,
}

const SUFFIX: &str = ".jsonl";

/// The name of a segment's file.
pub(super) fn name(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

/// The number in such a name.
pub(super) fn number(file: &str) -> Option<u64> {
    let number = file.strip_suffix(SUFFIX)?.parse().ok()?;
    (number > 0 && name(number) == file).then_some(number)
}

// === impl Lines ===

impl Lines<File> {
    /// The lines of a file between two places.
    pub(super) fn between(mut file: File, begin: u64, end: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(begin))?;
        Ok(Self { end: begin, ..Self::of(file, end.saturating_sub(begin)) })
    }
}

impl<R: Read> Lines<R> {
    /// Returns the lines of the first `bytes` bytes.
    pub(super) fn of(source: R, bytes: u64) -> Self {
        let source = BufReader::with_capacity(256 << 10, source.take(bytes));
        Self { source, line: Vec::new(), number: 0, end: 0 }
    }

    /// The next line. One that is too long comes cut, and not whole.
    pub(super) fn next_line(&mut self) -> io::Result<Option<SegmentLine<'_>>> {
        self.line.clear();
        let mut limited = (&mut self.source).take(LONGEST_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.end += read as u64;
        let bytes = self.line.strip_suffix(b"\n");
        Ok(Some(SegmentLine {
            bytes: bytes.unwrap_or(&self.line),
            is_whole: bytes.is_some(),
            number: self.number,
            end: self.end,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_name_must_be_canonical() {
        assert_eq!(number(&name(1)), Some(1));
        assert_eq!(number(&name(123_456_789)), Some(123_456_789));
        for other in ["1.jsonl", "00000000.jsonl", "+0000001.jsonl", "00000001.json", "00000001.jsonl.old"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn unterminated_line_is_partial_and_overlong_line_is_truncated() {
        let mut lines = Lines::of(&b"a\n\nb"[..], 100);
        let mut read = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            read.push((line.bytes.to_vec(), line.is_whole, line.number, line.end));
        }
        assert_eq!(read, [(b"a".to_vec(), true, 1, 2), (vec![], true, 2, 3), (b"b".to_vec(), false, 3, 4)]);
        let mut endless = Lines::of(io::repeat(b'x'), u64::MAX);
        let line = endless.next_line().unwrap().unwrap();
        assert!(!line.is_whole && line.bytes.len() <= LONGEST_LINE + 1);
    }
}
