//! Reports, one a line or as JSON.

use crate::command::audit::table::plain;
use crate::error::CliError;
use belljar_contract::usage::{UsageBasis, UsageReport};
use belljar_node::usage::{Calls, Totals};
use serde_json::json;
use std::fmt::Write as _;

pub(super) fn print_json(calls: &Calls) -> Result<(), CliError> {
    let value = json!({ "reports": calls.reports(), "totals": calls.totals() });
    print(&crate::output::json(&value))
}

pub(super) fn print_table(calls: &Calls) -> Result<(), CliError> {
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
    print((text + &sums(&calls.totals())).trim_end())
}

fn row(report: &UsageReport) -> [String; 7] {
    let tokens = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
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
        tokens(report.input_tokens),
        tokens(report.output_tokens),
        cost,
        basis.to_owned(),
    ]
}

fn sums(totals: &Totals) -> String {
    let Totals { calls, input_tokens, output_tokens, cost_usd, degraded_calls, unended_calls } = totals;
    let plural = if *calls == 1 { "" } else { "s" };
    let mut text = format!("{calls} call{plural}, {input_tokens} + {output_tokens} tokens, {cost_usd} USD");
    if *degraded_calls > 0 {
        // Writing to a String can't fail.
        let _ = write!(text, "; the cost of {degraded_calls} is not known");
    }
    if *unended_calls > 0 {
        let _ = write!(text, "; of {unended_calls} more no end is recorded");
    }
    text
}

/// Whoever reads may have seen enough.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    crate::command::printing::print(&format!("{text}\n"))
}
