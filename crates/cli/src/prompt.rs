//! Questions to the user at the terminal. Each first discards pending input: a key typed before the question appeared, or while its
//! context was still being printed, is no answer.

use crate::terminal::begin_review;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, IsTerminal, Write as _};

/// Answers of a yes/no question.
const YES_OR_NO: [(&[&str], bool); 2] = [(&["y", "yes"], true), (&["n", "no"], false)];

/// Returns true if the user can be asked: output for the user must reach a terminal, too.
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
/// I/O errors of reading standard input.
pub(crate) fn line(question: &str) -> io::Result<Option<String>> {
    // Needed for a question without preceding output.
    begin_review();
    // Input that isn't a terminal has nothing to discard.
    let _ = tcflush(stdin(), QueueSelector::IFlush);
    crate::output::err!("{question}");
    let _ = io::stderr().flush();
    let mut line = String::new();
    match io::stdin().read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim().to_owned())),
    }
}
