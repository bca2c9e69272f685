//! Reconciles usage reports with LiteLLM's spend logs, call by call, and reports every difference.
//!
//! The spend logs are what is billed (`docs/contracts/agents.md#a1.11`). The reports come from the host's audit log: a row
//! without a report is a call that bypassed the host.

use super::RecordedCalls;
use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{Cost, CostTotal, Excerpt};
use belljar_contract::spend::SpendRow;
use belljar_contract::usage::UsageReport;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Result of a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciliation {
    /// Calls with a report.
    pub calls: usize,
    /// Calls whose rows match their reports.
    pub agreeing: usize,
    /// Calls that ended so recently that their rows may not be written yet.
    pub awaited: Vec<CallId>,
    /// Rows of these calls and their runs.
    pub rows: usize,
    /// Rows of the same accounts that belong to other runs.
    pub other_rows: usize,
    /// Reported cost of the calls.
    pub reported_usd: CostTotal,
    /// Logged cost of the calls.
    pub logged_usd: CostTotal,
    /// All differences.
    pub differences: Vec<Difference>,
}

/// A difference between reports and spend logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The spend logs have no row for a call.
    Missing {
        /// The call.
        call_id: CallId,
        /// Its run.
        run_id: RunId,
        /// Its reported cost.
        reported_usd: Option<Cost>,
    },
    /// A row names one of our runs, but the call bypassed the host: another client has the key, or uses our run's id.
    Unknown {
        /// The row.
        request_id: Excerpt,
        /// The call in the row, if it names one.
        call_id: Option<CallId>,
        /// The run in the row.
        run_id: RunId,
        /// Its cost.
        logged_usd: Cost,
    },
    /// A call without a report has a cost, such as one that was never answered.
    Unreported {
        /// The row.
        request_id: Excerpt,
        /// The call.
        call_id: CallId,
        /// Its cost.
        logged_usd: Cost,
    },
    /// The cost of a call differs.
    Cost {
        /// The call.
        call_id: CallId,
        /// Reported cost; null without a report of it.
        reported_usd: Option<Cost>,
        /// Logged cost.
        logged_usd: CostTotal,
    },
    /// The tokens of a call differ.
    Tokens {
        /// The call.
        call_id: CallId,
        /// Kind of tokens: `input` or `output`.
        side: TokenKind,
        /// Reported number.
        reported: u64,
        /// Logged number.
        logged: u64,
    },
    /// A call is billed to another account.
    EndUser {
        /// The call.
        call_id: CallId,
        /// The reported account.
        reported: Excerpt,
        /// The billed account; null if there is none.
        logged: Option<Excerpt>,
    },
    /// A row names another run or attempt than the call's.
    Run {
        /// The call.
        call_id: CallId,
        /// The call's run and attempt.
        reported: (RunId, u32),
        /// The row's run and attempt.
        logged: (Option<RunId>, Option<u32>),
    },
    /// A call has several rows.
    Duplicate {
        /// The call.
        call_id: CallId,
        /// The rows.
        request_ids: Vec<Excerpt>,
    },
}

/// Kind of a call's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// Tokens of the request.
    Input,
    /// Tokens of the response.
    Output,
}

/// LiteLLM stores costs as floating-point numbers, which programs print with different digits. A relative difference up to this
/// is no difference.
const ROUNDING: f64 = 1e-12;

/// Compares reports and rows. Rows of calls that ended after `settled_until` may not be written yet.
pub fn reconcile(calls: &RecordedCalls, rows: &[SpendRow], settled_until: Timestamp) -> Reconciliation {
    let mut by_call: HashMap<&CallId, Vec<&SpendRow>> = HashMap::new();
    for row in rows {
        if let Some(call_id) = &row.call_id {
            by_call.entry(call_id).or_default().push(row);
        }
    }
    let mut compared = Reconciliation {
        calls: calls.reports.len(),
        agreeing: 0,
        awaited: Vec::new(),
        rows: 0,
        other_rows: 0,
        reported_usd: calls.totals().cost_usd.unwrap_or_default(),
        logged_usd: CostTotal::default(),
        differences: Vec::new(),
    };
    for report in &calls.reports {
        let rows = by_call.get(&report.usage_unit_id).map(Vec::as_slice).unwrap_or_default();
        compared.add(report, rows, settled_until);
    }
    let reported: HashSet<&CallId> = calls.reports.iter().map(|report| &report.usage_unit_id).collect();
    for row in rows.iter().filter(|row| !row.call_id.as_ref().is_some_and(|id| reported.contains(id))) {
        compared.add_stranger(calls, row);
    }
    compared
}

// === impl Reconciliation ===

impl Reconciliation {
    /// Returns true if there is no difference.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    /// Compares one call with its rows.
    fn add(&mut self, report: &UsageReport, rows: &[&SpendRow], settled_until: Timestamp) {
        let before = self.differences.len();
        let call_id = || report.usage_unit_id.clone();
        self.rows += rows.len();
        rows.iter().for_each(|row| self.logged_usd.add(&row.cost_usd));
        match rows {
            // A provider that rejects a call may write no row.
            [] if !report.was_accepted() => {}
            [] if report.ended_at > settled_until => return self.awaited.push(call_id()),
            [] => self.differences.push(Difference::Missing {
                call_id: call_id(),
                run_id: report.run_id.clone(),
                reported_usd: report.cost_usd.clone(),
            }),
            rows => {
                self.differences.extend(differing_names(report, rows));
                self.differences.extend(differing_amounts(report, rows));
            }
        }
        if self.differences.len() == before {
            self.agreeing += 1;
        }
    }

    /// Checks a row that belongs to no reported call.
    fn add_stranger(&mut self, calls: &RecordedCalls, row: &SpendRow) {
        let (request_id, logged_usd) = (row.request_id.clone(), row.cost_usd.clone());
        if let Some(call_id) = row.call_id.clone().filter(|id| calls.may_be_billed(id)) {
            self.rows += 1;
            self.logged_usd.add(&logged_usd);
            if !logged_usd.to_total().is_zero() {
                self.differences.push(Difference::Unreported { request_id, call_id, logged_usd });
            }
        } else if let Some(run_id) = row.run_id.clone().filter(|id| calls.runs.contains(id)) {
            self.rows += 1;
            self.logged_usd.add(&logged_usd);
            let call_id = row.call_id.clone();
            self.differences.push(Difference::Unknown { request_id, call_id, run_id, logged_usd });
        } else if row.end_user.as_ref().is_some_and(|user| calls.accounts.contains(user.as_str())) {
            self.other_rows += 1;
        }
    }
}

/// Returns the differences in account, run and attempt.
fn differing_names(report: &UsageReport, rows: &[&SpendRow]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for row in rows {
        if row.end_user.as_ref() != Some(&report.billing_account_id) {
            differences.push(Difference::EndUser {
                call_id: report.usage_unit_id.clone(),
                reported: report.billing_account_id.clone(),
                logged: row.end_user.clone(),
            });
        }
        if row.run_id.as_ref() != Some(&report.run_id) || row.attempt != Some(report.attempt) {
            differences.push(Difference::Run {
                call_id: report.usage_unit_id.clone(),
                reported: (report.run_id.clone(), report.attempt),
                logged: (row.run_id.clone(), row.attempt),
            });
        }
    }
    differences
}

/// Returns the differences in cost, tokens and number of rows.
fn differing_amounts(report: &UsageReport, rows: &[&SpendRow]) -> Vec<Difference> {
    let call_id = || report.usage_unit_id.clone();
    let mut differences = Vec::new();
    // LiteLLM writes a row of its own for each failed attempt before a successful one; it costs nothing.
    let was_in_vain = |row: &SpendRow| row.is_failure && row.cost_usd.to_total().is_zero();
    let booked: Vec<&&SpendRow> = rows.iter().filter(|row| !was_in_vain(row)).collect();
    if booked.len() > 1 {
        let request_ids = booked.iter().map(|row| row.request_id.clone()).collect();
        differences.push(Difference::Duplicate { call_id: call_id(), request_ids });
    }
    let logged_usd: CostTotal = rows.iter().map(|row| &row.cost_usd).collect();
    if !is_same(report.cost_usd.as_ref(), &logged_usd) {
        let reported_usd = report.cost_usd.clone();
        differences.push(Difference::Cost { call_id: call_id(), reported_usd, logged_usd });
    }
    if let [row] = booked.as_slice() {
        let without_cached = row.input_tokens.saturating_sub(row.cached_input_tokens);
        for (side, reported, logged) in [
            (TokenKind::Input, report.input_tokens, [row.input_tokens, without_cached]),
            (TokenKind::Output, report.output_tokens, [row.output_tokens; 2]),
        ] {
            if let Some(reported) = reported.filter(|reported| !logged.contains(reported)) {
                let logged = logged[0];
                differences.push(Difference::Tokens { call_id: call_id(), side, reported, logged });
            }
        }
    }
    differences
}

/// Returns true for equal amounts. Without a reported cost, only zero is equal.
fn is_same(reported: Option<&Cost>, logged: &CostTotal) -> bool {
    let Some(reported) = reported.map(Cost::to_total) else { return logged.is_zero() };
    let (one, other) = (reported.to_f64(), logged.to_f64());
    reported == *logged || (one - other).abs() <= ROUNDING * one.max(other)
}

#[cfg(test)]
mod tests;
