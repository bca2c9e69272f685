//! Bounded capture of a program's output: keeps the beginning and the end of a stream.

/// The beginning and the end of a stream.
#[derive(Debug)]
pub(super) struct CappedOutput {
    most: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Number of bytes left out between `head` and `tail`.
    cut: u64,
}

// === impl CappedOutput ===

impl CappedOutput {
    /// Creates a capture that keeps at most `most` bytes.
    pub(super) fn of(most: usize) -> Self {
        Self { most, head: Vec::new(), tail: Vec::new(), cut: 0 }
    }

    /// Appends the next bytes of the stream.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let (half, rest) = (self.most / 2, self.most - self.most / 2);
        let (begins, goes_on) = bytes.split_at(bytes.len().min(half.saturating_sub(self.head.len())));
        self.head.extend_from_slice(begins);
        self.tail.extend_from_slice(goes_on);
        // Shortened seldom, so that each byte is moved a few times at most.
        if self.tail.len() > 2 * rest + 4096 {
            self.shorten(rest);
        }
    }

    fn shorten(&mut self, most: usize) {
        let over = self.tail.len().saturating_sub(most);
        self.cut += over as u64;
        self.tail.drain(..over);
    }

    /// Returns the whole stream; `None` if bytes were left out.
    pub(super) fn whole(self) -> Option<Vec<u8>> {
        let Self { most, mut head, tail, cut } = self;
        head.extend_from_slice(&tail);
        (cut == 0 && head.len() <= most).then_some(head)
    }

    /// Returns the stream as text, with a line in place of the bytes left out, and the number of those bytes.
    pub(super) fn text(mut self) -> (String, u64) {
        self.shorten(self.most - self.most / 2);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.cut == 0 {
            // A character may lie across the two.
            return (text(&[self.head, self.tail].concat()), 0);
        }
        let (head, tail, cut) = (text(&self.head), text(&self.tail), self.cut);
        (format!("{head}\n[… {cut} bytes are left out here …]\n{tail}"), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_over_the_limit_keeps_its_beginning_and_end() {
        let mut output = CappedOutput::of(10);
        (0..100_000).for_each(|number| output.take(format!("{number:05}").as_bytes()));
        let (text, cut) = output.text();
        assert_eq!(cut, 499_990);
        assert_eq!(text, "00000\n[… 499990 bytes are left out here …]\n99999");
    }

    #[test]
    fn output_within_the_limit_is_kept_whole_with_split_characters() {
        for (given, most) in [("", 0), ("äöü", 6), ("aäb", 4), ("abc", 100)] {
            let mut output = CappedOutput::of(most);
            given.as_bytes().chunks(1).for_each(|byte| output.take(byte));
            assert_eq!(output.text(), (given.to_owned(), 0), "{most}");
        }
        let mut output = CappedOutput::of(3);
        output.take(b"abcd");
        assert_eq!(output.whole(), None);
    }
}
