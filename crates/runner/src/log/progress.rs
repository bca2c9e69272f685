//! Reporting the output of a running program, a few times a second.

use super::Log;
use belljar_contract::event::Event;
use std::time::{Duration, Instant};

/// Reports the last line that a step has printed.
pub(crate) struct Progress<'l> {
    log: &'l Log<'l>,
    index: usize,
    reported_at: Option<Instant>,
}

const INTERVAL: Duration = Duration::from_millis(200);
const LONGEST_LINE: usize = 200;

// === impl Progress ===

impl<'l> Progress<'l> {
    /// Reports for the step whose place in the job is `index`.
    pub(crate) fn of_step(log: &'l Log<'l>, index: usize) -> Self {
        Self { log, index, reported_at: None }
    }

    /// Takes note of new output, and reports it unless something was reported a moment ago.
    pub(crate) fn show(&mut self, news: &[u8]) {
        if self.reported_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        if let Some(last_line) = last_line(news) {
            self.log.write(Event::StepProgress { index: self.index, last_line });
            self.reported_at = Some(Instant::now());
        }
    }
}

/// The last line that has anything to show, as far as it is shown.
fn last_line(news: &[u8]) -> Option<String> {
    // Characters take four bytes at most, and so much of the end is enough to look at.
    const LOOKED_AT: usize = 64 << 10;
    let end = &news[news.len().saturating_sub(LOOKED_AT)..];
    let text = String::from_utf8_lossy(end);
    let visible =
        |line: &str| -> String { line.chars().filter(|c| !c.is_control()).take(LONGEST_LINE).collect() };
    text.rsplit(['\n', '\r']).map(visible).find(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_the_last_nonempty_line_without_control_characters() {
        assert_eq!(last_line(b"one\ntwo\n\n").as_deref(), Some("two"));
        assert_eq!(last_line(b"10%\r20%\r").as_deref(), Some("20%"));
        assert_eq!(last_line(b"\x1b]0;title\x07red\xff").as_deref(), Some("]0;titlered\u{fffd}"));
        assert_eq!(last_line("x".repeat(1000).as_bytes()).map(|line| line.len()), Some(LONGEST_LINE));
        assert_eq!(last_line(b"\n \n"), None);
    }
}
