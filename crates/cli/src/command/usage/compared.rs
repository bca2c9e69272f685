//! Results of a reconciliation, for people or as JSON.

use super::list::print;
use crate::command::audit::table::plain;
use crate::error::CliError;
use belljar_contract::inference::{Cost, Excerpt};
use belljar_journal::usage::reconcile::{Difference, Reconciliation, TokenKind};
use serde_json::json;
use std::fmt::Write as _;

pub(super) fn print_json(provider: &str, compared: &Reconciliation) -> Result<(), CliError> {
    let value = json!({ "provider": provider, "agrees": compared.agrees(), "reconciliation": compared });
    print(&crate::output::json(&value))
}

pub(super) fn print_text(provider: &str, compared: &Reconciliation) -> Result<(), CliError> {
    let Reconciliation { calls, agreeing, rows, reported_usd, logged_usd, .. } = compared;
    let mut text = format!(
        "{}: {agreeing} of {calls} calls agree with {rows} rows of its spend logs\n  \
         reported  {reported_usd} USD\n  logged    {logged_usd} USD\n",
        plain(provider)
    );
    let mut add = |line: String| {
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {}", plain(&line));
    };
    if !compared.awaited.is_empty() {
        add(format!("awaited   {} calls that ended a moment ago", compared.awaited.len()));
    }
    if compared.other_rows > 0 {
        add(format!("besides   {} rows of the same accounts, of other runs", compared.other_rows));
    }
    compared.differences.iter().map(line).for_each(add);
    print(text.trim_end())
}

fn line(difference: &Difference) -> String {
    let dollars = |cost: &Option<Cost>| {
        cost.as_ref().map_or("no cost".to_owned(), |cost| format!("{} USD", cost.to_total()))
    };
    let named = |name: &Option<Excerpt>| name.as_ref().map_or("no account", Excerpt::as_str).to_owned();
    match difference {
        Difference::Missing { call_id, reported_usd, .. } => {
            format!("missing   {call_id}: no row; reported with {}", dollars(reported_usd))
        }
        Difference::Unknown { request_id, call_id, run_id, logged_usd } => {
            let call = call_id.as_ref().map_or("no call of ours".to_owned(), ToString::to_string);
            let (row, cost) = (request_id.as_str(), logged_usd.to_total());
            format!("unknown   {call}: the row {row} of run {run_id}, {cost} USD, is of no recorded call")
        }
        Difference::Unreported { request_id, call_id, logged_usd } => {
            let (row, cost) = (request_id.as_str(), logged_usd.to_total());
            format!("unreported {call_id}: it was not answered, and the row {row} says {cost} USD")
        }
        Difference::Cost { call_id, reported_usd, logged_usd } => {
            format!(
                "cost      {call_id}: reported with {}, logged with {logged_usd} USD",
                dollars(reported_usd)
            )
        }
        Difference::Tokens { call_id, side, reported, logged } => {
            let side = match side {
                TokenKind::Input => "in",
                TokenKind::Output => "out",
            };
            format!("tokens    {call_id}: {reported} {side} reported, {logged} logged")
        }
        Difference::EndUser { call_id, reported, logged } => {
            format!("end_user  {call_id}: {} pays, {} is billed", reported.as_str(), named(logged))
        }
        Difference::Run { call_id, reported, logged } => {
            let run = logged.0.as_ref().map_or("no run".to_owned(), ToString::to_string);
            let attempt = logged.1.map_or("none".to_owned(), |attempt| attempt.to_string());
            let (own_run, own_attempt) = reported;
            format!(
                "run       {call_id}: of {own_run}, attempt {own_attempt}; logged as {run}, attempt {attempt}"
            )
        }
        Difference::Duplicate { call_id, request_ids } => {
            let rows: Vec<&str> = request_ids.iter().map(Excerpt::as_str).collect();
            format!("duplicate {call_id}: {} rows: {}", rows.len(), rows.join(", "))
        }
    }
}
