//! Estimates the number of tokens of an answer from its size, for calls that end without a report.
//!
//! The result is an estimate, not a bound: in a stream with one event for each token, the event is many times larger than the
//! token.

use super::AnswerFormat;

/// Size of an answer so far.
#[derive(Debug)]
pub(super) struct ReceivedSize {
    shape: AnswerFormat,
    /// Tokens of the complete lines; bytes of a document.
    complete: u64,
    /// Bytes of the incomplete line.
    line_bytes: u64,
}

/// Average number of bytes of text in a token.
const BYTES_OF_TOKEN: u64 = 4;
/// Shorter lines hold no output: they are empty, or name an event.
const SHORTEST_EVENT: u64 = 48;
/// Number of bytes that an event has around its text. It holds at least one token.
const AROUND_TEXT: u64 = 300;

// === impl ReceivedSize ===

impl ReceivedSize {
    pub(super) fn new(shape: AnswerFormat) -> Self {
        Self { shape, complete: 0, line_bytes: 0 }
    }

    pub(super) fn see(&mut self, bytes: &[u8]) {
        if self.shape == AnswerFormat::Whole {
            self.complete = self.complete.saturating_add(bytes.len() as u64);
            return;
        }
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let line_bytes = self.line_bytes.saturating_add((end - begin) as u64);
            self.complete = self.complete.saturating_add(of_line(line_bytes));
            self.line_bytes = 0;
            begin = end + 1;
        }
        self.line_bytes = self.line_bytes.saturating_add((bytes.len() - begin) as u64);
    }

    pub(super) fn tokens(&self) -> u64 {
        match self.shape {
            AnswerFormat::Whole => self.complete / BYTES_OF_TOKEN,
            AnswerFormat::Lines => self.complete.saturating_add(of_line(self.line_bytes)),
        }
    }
}

fn of_line(bytes: u64) -> u64 {
    if bytes < SHORTEST_EVENT { 0 } else { 1 + bytes.saturating_sub(AROUND_TEXT) / BYTES_OF_TOKEN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_counts_as_one_token_and_long_events_by_text_length() {
        let event = format!("event: content_block_delta\ndata: {{\"text\":\"a\",{}}}\n\n", " ".repeat(60));
        let long = format!("data: {}\n", "a".repeat(4_300));
        let all = [event.repeat(10), long].concat();
        for piece in [1, 7, all.len()] {
            let mut lines = ReceivedSize::new(AnswerFormat::Lines);
            all.as_bytes().chunks(piece).for_each(|piece| lines.see(piece));
            assert_eq!(lines.tokens(), 10 + 1 + 4_006 / 4, "{piece}");
        }
        let mut whole = ReceivedSize::new(AnswerFormat::Whole);
        whole.see(&[b'a'; 400]);
        assert_eq!(whole.tokens(), 100);
    }
}
