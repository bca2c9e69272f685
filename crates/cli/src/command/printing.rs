//! What commands print: documents for programs, tables for people.

use crate::error::CliError;
use anstyle::Style;
use serde::Serialize;
use std::io::Write as _;

/// Rows under a heading, each column as wide as it has to be.
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

/// Prints a document for programs.
pub(crate) fn document(document: &impl Serialize) -> Result<(), CliError> {
    let mut text = serde_json::to_vec_pretty(document).map_err(|error| CliError::output(error.into()))?;
    text.push(b'\n');
    std::io::stdout().lock().write_all(&text).map_err(CliError::output)
}

// === impl Table ===

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heading: [&str; COLUMNS]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, row: [String; COLUMNS]) {
        self.rows.push(row);
    }

    pub(crate) fn print(&self) {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
        }
        for (index, row) in self.rows.iter().enumerate() {
            let style = if index == 0 { Style::new().bold() } else { Style::new() };
            let cells: Vec<_> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            anstream::println!("{style}{}{style:#}", cells.join("  ").trim_end());
        }
    }
}
