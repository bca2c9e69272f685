//! Builds lines and paragraphs from pieces of a page.

/// Text built piece by piece. White space is collapsed to one space within a line.
#[derive(Debug, Default)]
pub(super) struct Prose {
    text: String,
    /// True if the current line has text followed by white space.
    is_apart: bool,
    /// Number of line ends before the next text.
    ends: usize,
    /// Prefix of the next line.
    begin: String,
}

/// Maximum number of consecutive line ends, that is one empty line.
const MOST_ENDS: usize = 2;

// === impl Prose ===

impl Prose {
    /// Appends text and collapses its white space.
    pub(super) fn text(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else {
            self.is_apart |= !text.is_empty();
            return;
        };
        self.is_apart |= text.starts_with(char::is_whitespace);
        self.word(first);
        for word in words {
            self.is_apart = true;
            self.word(word);
        }
        self.is_apart = text.ends_with(char::is_whitespace);
    }

    /// Appends preformatted text.
    pub(super) fn preformatted(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.open();
                self.text.push('\n');
            }
            if !line.is_empty() {
                self.open();
                self.text.push_str(line);
            }
        }
    }

    /// The next text starts on a new line, the given number of lines below.
    pub(super) fn end_line(&mut self, lines: usize) {
        self.is_apart = false;
        self.ends = self.ends.max(lines.min(MOST_ENDS));
    }

    /// The next line starts with the given prefix.
    pub(super) fn begin_line(&mut self, with: &str) {
        self.end_line(1);
        with.clone_into(&mut self.begin);
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        text
    }

    fn word(&mut self, word: &str) {
        let is_apart = self.is_apart && self.ends == 0 && !self.text.is_empty();
        if is_apart && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
        self.open();
        self.text.push_str(word);
    }

    /// Writes pending line ends, and starts the next line.
    fn open(&mut self) {
        if !self.text.is_empty() {
            self.text.extend(std::iter::repeat_n('\n', self.ends));
        }
        self.ends = 0;
        self.text.push_str(&std::mem::take(&mut self.begin));
    }
}
