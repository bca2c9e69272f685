//! Reports, one a line or as JSON.

use crate::command::audit::table::plain;
use crate::error::CliError;
use crate::usage_text;
use belljar_contract::usage::{UsageBasis, UsageReport};
use belljar_journal::usage::RecordedCalls;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn print_json(calls: &RecordedCalls, state: &Path) -> Result<(), CliError> {
    let state = crate::output::path(state).to_string();
    let value = json!({ "state_directory": state, "reports": calls.reports(), "totals": calls.totals() });
    print(&crate::output::json(&value))
}

pub(super) fn print_table(calls: &RecordedCalls) -> Result<(), CliError> {
    let head = ["CALL", "MODEL", "PROVIDER", "IN", "OUT", "COST", "BASIS"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(calls.reports().iter().map(row)).collect();
    let mut text = String::new();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at {
            // Numbers of tokens stand below each other.
            3 | 4 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    print((text + &usage_text::summary(&calls.totals())).trim_end())
}

fn row(report: &UsageReport) -> [String; 7] {
    let cost = match &report.cost_usd {
        Some(cost) => cost.to_total().to_string(),
        None if report.is_degraded() => "?".to_owned(),
        None => "-".to_owned(),
    };
    let basis = match report.basis() {
        UsageBasis::SpendLogs => "spend_logs",
        UsageBasis::ProviderReported => "provider_reported",
    };
    [
        report.usage_unit_id.to_string(),
        plain(report.model.as_str()),
        plain(report.provider.as_str()),
        usage_text::tokens(report.input_tokens),
        usage_text::tokens(report.output_tokens),
        cost,
        basis.to_owned(),
    ]
}

/// Prints text and a line break on standard output. A reader may close the pipe early.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    crate::command::printing::print(&format!("{text}\n"))
}
