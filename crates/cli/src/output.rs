//! Output of commands for users, with escapes for characters that a terminal acts on.
//!
//! A value from outside (a sandbox, an agent, a server, a file name) is escaped where it is put into a text, by
//! [`belljar_policy::untrusted`]. What reaches the terminal is looked at once more as a whole: apart from line feeds and the few styles
//! that belljar itself uses, no character passes that a terminal acts on, that reorders text or that cannot be seen. Tabs become blanks
//! there; files and pipes get them as they are.
//! Programs read JSON, in whose strings such characters are escaped as `\uXXXX`.

use crate::error::CliError;
use belljar_policy::untrusted::{self, is_hidden};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

pub(crate) use belljar_policy::untrusted::{Untrusted, UntrustedLines, path};

/// Prints on standard output.
macro_rules! out {
    ($($part:tt)*) => { $crate::output::print(format_args!($($part)*)) };
}

/// Prints a line on standard output.
macro_rules! outln {
    ($($part:tt)*) => { $crate::output::print_line(format_args!($($part)*)) };
}

/// Prints on standard error.
macro_rules! err {
    ($($part:tt)*) => { $crate::output::print_error(format_args!($($part)*)) };
}

/// Prints a line on standard error.
macro_rules! errln {
    ($($part:tt)*) => { $crate::output::print_error_line(format_args!($($part)*)) };
}

pub(crate) use {err, errln, out, outln};

/// The parameters of the styles that belljar prints: reset, bold, and four colors that are seen on every background.
const STYLES: [&str; 6] = ["0", "1", "31", "32", "33", "36"];

const CLEAR_LINE: &str = "\r\x1b[K";

/// The first failure to write to standard output. What a command does goes on; [`outcome`] reports it at the end.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

pub(crate) fn print(text: Arguments<'_>) {
    write(on_stdout(&text.to_string()).as_bytes());
}

pub(crate) fn print_line(text: Arguments<'_>) {
    write(format!("{}\n", on_stdout(&text.to_string())).as_bytes());
}

pub(crate) fn print_error(text: Arguments<'_>) {
    tell(&text.to_string());
}

pub(crate) fn print_error_line(text: Arguments<'_>) {
    tell(&format!("{text}\n"));
}

/// Writes to standard output, without the styles if it is no terminal.
pub(crate) fn write(text: &[u8]) {
    let mut output = anstream::stdout();
    note(output.write_all(text).and_then(|()| output.flush()));
}

/// Writes to standard output as it is: JSON and texts that are escaped already, belljar's own manual, and patches, which are exact.
pub(crate) fn write_exactly(bytes: &[u8]) {
    let mut output = io::stdout().lock();
    note(output.write_all(bytes).and_then(|()| output.flush()));
}

/// Records a failure to write to standard output. A broken pipe is no failure: the reader has closed it deliberately.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Returns the failure to write to standard output, once.
///
/// # Errors
/// [`CliError::Output`] if something that was to be printed is lost.
pub(crate) fn outcome() -> Result<(), CliError> {
    match FAILED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(CliError::output(error)),
        None => Ok(()),
    }
}

/// Prints on standard error, which may be closed or full: there is no other place to say so.
pub(crate) fn tell(text: &str) {
    let _ = anstream::stderr().write_all(on_stderr(text).as_bytes());
}

/// Prints a message of the command line parser on standard error, in the parser's styles.
pub(crate) fn tell_styled(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Writes the lines of the log to standard error, escaped.
pub(crate) struct LogWriter(fn(&str) -> Cow<'_, str>);

/// Writer for a log in text format.
pub(crate) fn log() -> LogWriter {
    LogWriter(on_stderr)
}

/// Writer for a log in JSON format.
pub(crate) fn json_log() -> LogWriter {
    LogWriter(untrusted::json)
}

impl io::Write for LogWriter {
    /// An event comes whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        io::stderr().write_all((self.0)(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Replaces the last line of standard error, which is a terminal.
pub(crate) fn redraw(text: &str) {
    let _ = anstream::stderr().write_all(format!("{CLEAR_LINE}{}", on_stderr(text)).as_bytes());
}

/// Formats a document as indented JSON.
pub(crate) fn json(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    untrusted::json(&text).into_owned()
}

/// Formats a document as JSON on one line.
pub(crate) fn json_line(document: &impl Serialize) -> String {
    let text = serde_json::to_string(document).unwrap_or_default();
    untrusted::json(&text).into_owned()
}

/// Returns the text as printed on standard output.
pub(crate) fn on_stdout(text: &str) -> Cow<'_, str> {
    printed(text, io::stdout().is_terminal())
}

/// Returns the text as printed on standard error.
fn on_stderr(text: &str) -> Cow<'_, str> {
    printed(text, io::stderr().is_terminal())
}

fn printed(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let shown = shown(text);
    match is_terminal && shown.contains('\t') {
        true => Cow::Owned(without_tabs(&shown)),
        false => shown,
    }
}

/// The text with blanks up to the next multiple of eight columns in place of every tab. What a terminal does with a tab depends on its tab
/// stops, which a program may have cleared, and at the end of a line some print over the last character.
fn without_tabs(text: &str) -> String {
    const WIDTH: usize = 8;
    let (mut spaced, mut column, mut rest) = (String::with_capacity(text.len() + 64), 0, text);
    while let Some(character) = rest.chars().next() {
        let style = style_length(rest);
        let length = style.max(character.len_utf8());
        match character {
            '\t' => {
                let blanks = WIDTH - column % WIDTH;
                spaced.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            _ => {
                spaced.push_str(&rest[..length]);
                column = if character == '\n' { 0 } else { column + usize::from(style == 0) };
            }
        }
        rest = &rest[length..];
    }
    spaced
}

/// The text with an escape in place of every hidden character but line feeds, tabs and belljar's own styles.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_kept = |character: char| !is_hidden(character) || matches!(character, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match style_length(rest) {
            0 if is_kept(character) => {
                shown.push(character);
                character.len_utf8()
            }
            0 => {
                // Writing to a String can't fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
                character.len_utf8()
            }
            length => {
                shown.push_str(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// A text of belljar's own on one line, in which values from outside are quoted and escaped already.
pub(crate) fn quoted(text: &str) -> String {
    shown(text).replace('\n', "\\u{a}")
}

/// The length of the style that the text begins with; 0 if it begins with none of belljar's.
fn style_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let Some(end) = rest.find('m') else { return 0 };
    match rest[..end].split(';').all(|parameter| STYLES.contains(&parameter)) {
        true => "\x1b[".len() + end + 1,
        false => 0,
    }
}

/// The text in pieces that a terminal of that many columns shows on one line each. A character outside of ASCII counts as two columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<&str> {
    let (mut pieces, mut from, mut used) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        let width = match character {
            '\t' => 8,
            character if character.is_ascii() => 1,
            _ => 2,
        };
        if used + width > columns.max(8) {
            pieces.push(&text[from..at]);
            (from, used) = (at, 0);
        }
        used += width;
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::{AnsiColor, Style};

    #[test]
    fn terminal_output_escapes_all_controls_but_newlines_tabs_and_own_styles() {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let own = format!("{red}bad{red:#}\n\ta ✓ ü\n");
        assert_eq!(shown(&own), own);
        for (said, printed) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[8mhidden\u{1b}[0m", "\\u{1b}[8mhidden\u{1b}[0m"),
            ("\u{1b}[31;8m", "\\u{1b}[31;8m"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("a\r\u{202e}b\u{9b}1m", "a\\u{d}\\u{202e}b\\u{9b}1m"),
        ] {
            assert_eq!(shown(said), printed);
        }
    }

    #[test]
    fn tabs_are_expanded_only_for_terminals() {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
        for (text, spaced) in [
            ("\ta\n+\tb", format!("{0}a\n+{1}b", " ".repeat(8), " ".repeat(7))),
            ("1234567\t8\t9", format!("1234567 8{}9", " ".repeat(7))),
            ("12345678\t.", format!("12345678{}.", " ".repeat(8))),
        ] {
            assert_eq!(printed(text, true), spaced);
            // The control.
            assert_eq!(printed(text, false), text);
        }
        let styled = format!("{red}+a\tb{red:#}");
        assert_eq!(printed(&styled, true), format!("{red}+a{}b{red:#}", " ".repeat(6)));
    }

    #[test]
    fn long_line_is_wrapped_without_loss() {
        let text = format!("{}漢{}", "a".repeat(19), "b".repeat(30));
        let pieces = wrapped(&text, 20);
        assert_eq!(pieces.concat(), text);
        assert_eq!(pieces.iter().map(|piece| piece.chars().count()).collect::<Vec<_>>(), [19, 19, 12]);
        assert_eq!(wrapped("", 20), [""]);
    }

    #[test]
    fn json_output_escapes_hidden_characters_losslessly() {
        let document = serde_json::json!({ "path": "a\u{202e}b\u{e0041}" });
        let text = json(&document);
        assert!(text.contains("a\\u202eb\\udb40\\udc41"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }
}
