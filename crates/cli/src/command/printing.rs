//! Output of commands: documents for programs, rows in columns for people.

use crate::error::CliError;
use crate::output;
use belljar_policy::untrusted::is_hidden;
use serde::Serialize;

/// Prints text on standard output. A reader may close the pipe early.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    output::write_exactly(output::on_stdout(text).as_bytes());
    output::outcome()
}

/// Prints a document.
pub(super) fn print_json(document: &impl Serialize) -> Result<(), CliError> {
    print(&(output::json(document) + "\n"))
}

/// A patch is exact, so what a terminal would hide in it is counted.
pub(super) fn warn_of_hidden(patch: &str) {
    // Line ends of other systems are ordinary.
    let is_unseen = |character: char| is_hidden(character) && !matches!(character, '\n' | '\t' | '\r');
    let hidden = patch.matches(is_unseen).count();
    if hidden > 0 {
        crate::output::errln!(
            "belljar: {hidden} characters in this patch reorder or hide text; at a terminal, and with --escape, they are shown"
        );
    }
}

/// Rows in columns.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
