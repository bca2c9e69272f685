//! The lines of a text that match.

use crate::deadline::{Deadline, Interruption};
use regex::bytes::Regex;
use std::ops::Range;

/// A line that matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchingLine {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Range of the line, without its end.
    pub(super) range: Range<usize>,
}

/// Goes through the matching lines of a text in order.
///
/// The whole text is searched at once, which passes over lines that can't match quickly. A match that spans lines is
/// none of a line; once one has appeared, each line is tried by itself, since the next search could span as much
/// again.
pub(super) struct MatchingLines<'t> {
    regex: &'t Regex,
    text: &'t [u8],
    deadline: &'t Deadline<'t>,
    /// Start and number of the first line that was not examined.
    at: usize,
    number: u64,
    one_by_one: bool,
}

// === impl MatchingLines ===

impl<'t> MatchingLines<'t> {
    pub(super) fn new(regex: &'t Regex, text: &'t [u8], deadline: &'t Deadline<'t>) -> Self {
        Self { regex, text, deadline, at: 0, number: 1, one_by_one: false }
    }

    fn next_hit(&mut self) -> Result<Option<MatchingLine>, Interruption> {
        // Number of lines between checks for cancellation: a prompt stop at negligible cost.
        const LINES_BETWEEN_CHECKS: u64 = 4096;
        while self.at < self.text.len() {
            if self.number.is_multiple_of(LINES_BETWEEN_CHECKS) {
                self.deadline.check()?;
            }
            let candidate = match self.one_by_one {
                true => None,
                false => match self.regex.find_at(self.text, self.at) {
                    Some(found) => Some(found),
                    None => return Ok(None),
                },
            };
            let start = candidate.map_or(self.at, |found| self.start_of_line(found.start()));
            if start == self.text.len() {
                return Ok(None);
            }
            let end = end_of_line(self.text, start);
            let number = self.number + count_lines(&self.text[self.at..start]);
            (self.at, self.number) = (end + 1, number + 1);
            let range = start..without_return(self.text, start, end);
            let spans_lines = candidate.is_some_and(|found| found.end() > end);
            self.one_by_one |= spans_lines;
            if (candidate.is_some() && !spans_lines) || self.regex.is_match(&self.text[range.clone()]) {
                return Ok(Some(MatchingLine { number, range }));
            }
        }
        Ok(None)
    }

    fn start_of_line(&self, position: usize) -> usize {
        let before = &self.text[self.at..position];
        before.iter().rposition(|&byte| byte == b'\n').map_or(self.at, |newline| self.at + newline + 1)
    }
}

impl Iterator for MatchingLines<'_> {
    type Item = Result<MatchingLine, Interruption>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_hit().transpose()
    }
}

/// The lines before the one that starts at `start`, the nearest first.
pub(super) fn before(text: &[u8], start: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text[..start].strip_suffix(b"\n");
    std::iter::from_fn(move || {
        let lines = rest?;
        let newline = lines.iter().rposition(|&byte| byte == b'\n');
        let line = &lines[newline.map_or(0, |newline| newline + 1)..];
        rest = newline.map(|newline| &lines[..newline]);
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// The lines after the one that ends at `end`.
pub(super) fn after(text: &[u8], end: usize) -> impl Iterator<Item = &[u8]> {
    let newline = end_of_line(text, end);
    let rest = text.get(newline + 1..).unwrap_or_default();
    // An empty rest after the last newline is no line.
    let lines = rest.strip_suffix(b"\n").map_or((!rest.is_empty()).then_some(rest), Some);
    lines
        .into_iter()
        .flat_map(|lines| lines.split(|&byte| byte == b'\n'))
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn end_of_line(text: &[u8], from: usize) -> usize {
    text[from..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |newline| from + newline)
}

fn without_return(text: &[u8], start: usize, end: usize) -> usize {
    if text[start..end].ends_with(b"\r") { end - 1 } else { end }
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').fold(0, |count, _| count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancellation::Cancellation;
    use crate::deadline::JobTime;
    use proptest::prelude::{prop_assert_eq, proptest};
    use regex::bytes::RegexBuilder;
    use std::time::Duration;

    fn regex(pattern: &str) -> Regex {
        RegexBuilder::new(pattern).multi_line(true).crlf(true).build().unwrap()
    }

    fn matching(regex: &Regex, text: &str) -> Vec<(u64, String)> {
        let cancellation = Cancellation::new().unwrap();
        let time = JobTime::alone(Duration::from_secs(60));
        let deadline = Deadline::of_job(&time, &cancellation);
        MatchingLines::new(regex, text.as_bytes(), &deadline)
            .map(|hit| hit.unwrap())
            .map(|hit| (hit.number, text[hit.range].to_owned()))
            .collect()
    }

    /// Returns the matches by definition: every line on its own.
    fn matching_by_lines(regex: &Regex, text: &str) -> Vec<(u64, String)> {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| regex.is_match(line.as_bytes()));
        lines.map(|(number, line)| (number, line.to_owned())).collect()
    }

    #[test]
    fn search_finds_exactly_the_lines_that_match_individually() {
        for pattern in ["a", "^a", "b$", "a\\s+b", "[^a]", "^$", "a b|b\\na", "(?s)a.*b", "\\bab\\b", "x*"] {
            let regex = regex(pattern);
            proptest!(|(text in "[ab \n]{0,60}")| {
                prop_assert_eq!(matching(&regex, &text), matching_by_lines(&regex, &text), "{}", pattern);
            });
        }
    }

    #[test]
    fn carriage_return_belongs_to_the_line_ending() {
        assert_eq!(matching(&regex("b$"), "ab\r\nba\r\n"), [(1, "ab".to_owned())]);
    }

    #[test]
    fn search_context_is_limited_to_neighbouring_lines() {
        let text = b"one\r\ntwo\nthree\n\nfive\n";
        let three = 9..14;
        let before: Vec<&[u8]> = before(text, three.start).collect();
        assert_eq!(before, [&b"two"[..], b"one"]);
        let after: Vec<&[u8]> = after(text, three.end).collect();
        assert_eq!(after, [&b""[..], b"five"]);
        assert_eq!(super::after(b"one", 3).count(), 0);
        assert_eq!(super::before(b"one", 0).count(), 0);
    }
}
