//! Text in lines and paragraphs, from pieces of a page.

/// Text that is written piece by piece. White space is one space, until lines are told to end.
#[derive(Debug, Default)]
pub(super) struct Prose {
    text: String,
    /// Something stands on the line, and a space was after it.
    is_apart: bool,
    /// How many lines end before what comes next.
    ends: usize,
    /// What the next line begins with.
    begin: String,
}

/// Never more than one empty line.
const MOST_ENDS: usize = 2;

// === impl Prose ===

impl Prose {
    /// Text whose white space means nothing.
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

    /// Text that stands as it is.
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

    /// What comes next stands on another line, so many lines further down.
    pub(super) fn end_line(&mut self, lines: usize) {
        self.is_apart = false;
        self.ends = self.ends.max(lines.min(MOST_ENDS));
    }

    /// The next line begins with that.
    pub(super) fn begin_line(&mut self, with: &str) {
        self.end_line(1);
        with.clone_into(&mut self.begin);
    }

    /// All of it.
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

    /// Ends the lines that are to end, and begins the next one.
    fn open(&mut self) {
        if !self.text.is_empty() {
            self.text.extend(std::iter::repeat_n('\n', self.ends));
        }
        self.ends = 0;
        self.text.push_str(&std::mem::take(&mut self.begin));
    }
}
