//! Questions to the person at the terminal. Each begins with a terminal in which nothing waits to be read: a key that was typed before
//! the question was there, or while what it is about was still being printed, is no answer to it.

use crate::terminal::begin_review;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, IsTerminal, Write as _};

/// The answers to a question that takes a yes or a no.
const YES_OR_NO: [(&[&str], bool); 2] = [(&["y", "yes"], true), (&["n", "no"], false)];

/// Returns true if a person can be asked: also what is printed for them has to reach a terminal.
pub(crate) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until the answer is yes or no. The end of the input is a no.
pub(crate) fn confirmed(question: &str) -> bool {
    answer(question, &YES_OR_NO).unwrap_or(false)
}

/// Asks until one of the answers is given; `None` at the end of the input.
pub(crate) fn answer<T: Copy>(question: &str, answers: &[(&[&str], T)]) -> Option<T> {
    loop {
        let line = line(question).ok()??;
        if let Some((_, meant)) = answers.iter().find(|(words, _)| words.contains(&line.as_str())) {
            return Some(*meant);
        }
    }
}

/// Asks for a line; `None` at the end of the input.
///
/// # Errors
/// That of reading.
pub(crate) fn line(question: &str) -> io::Result<Option<String>> {
    // For a question before which nothing was shown.
    begin_review();
    // What is no terminal has nothing to be thrown away.
    let _ = tcflush(stdin(), QueueSelector::IFlush);
    crate::output::err!("{question}");
    let _ = io::stderr().flush();
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim().to_owned())),
    }
}
