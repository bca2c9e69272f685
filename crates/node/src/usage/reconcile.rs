//! Holds usage reports against LiteLLM's spend logs, call by call, and tells every difference.
//!
//! The spend logs are what is billed (`spec/2 §Invariants`, 11). The reports come from the host's audit: a row that they know
//! nothing of is a call that did not go by the host.

use super::Calls;
use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{Cost, CostTotal, Excerpt};
use belljar_contract::spend::SpendRow;
use belljar_contract::usage::UsageReport;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// What came of comparing them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciliation {
    /// Calls with a report.
    pub calls: usize,
    /// Calls that are in the books as they were reported.
    pub agreeing: usize,
    /// Calls that ended too late for their rows to be missing yet.
    pub awaited: Vec<CallId>,
    /// Rows of these calls and their runs.
    pub rows: usize,
    /// Rows of the same accounts that belong to no run that is compared here.
    pub other_rows: usize,
    /// What the calls cost, as they were reported.
    pub reported_usd: CostTotal,
    /// What they cost, as the books have it.
    pub logged_usd: CostTotal,
    /// Everything that does not agree.
    pub differences: Vec<Difference>,
}

/// Something on which the reports and the books do not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The books have nothing of a call.
    Missing {
        /// The call.
        call_id: CallId,
        /// Its run.
        run_id: RunId,
        /// What it was reported to cost.
        reported_usd: Option<Cost>,
    },
    /// The books have a call of our run that never went by the host: somebody else has the key, or says that he is us.
    Unknown {
        /// The row.
        request_id: Excerpt,
        /// The call, if the row says one.
        call_id: Option<CallId>,
        /// The run that the row says.
        run_id: RunId,
        /// What it costs.
        logged_usd: Cost,
    },
    /// The books have a cost of a call that has no report, such as one that was never answered.
    Unreported {
        /// The row.
        request_id: Excerpt,
        /// The call.
        call_id: CallId,
        /// What it costs.
        logged_usd: Cost,
    },
    /// A call costs something else.
    Cost {
        /// The call.
        call_id: CallId,
        /// What was reported; null where nothing was.
        reported_usd: Option<Cost>,
        /// What the books have.
        logged_usd: CostTotal,
    },
    /// A call has used other tokens.
    Tokens {
        /// The call.
        call_id: CallId,
        /// Which of them: `input` or `output`.
        side: Side,
        /// What was reported.
        reported: u64,
        /// What the books have.
        logged: u64,
    },
    /// A call is billed to somebody else.
    EndUser {
        /// The call.
        call_id: CallId,
        /// Who pays.
        reported: Excerpt,
        /// Who is billed; null where nobody is.
        logged: Option<Excerpt>,
    },
    /// A call stands in the books as one of another run or attempt.
    Run {
        /// The call.
        call_id: CallId,
        /// Its run and attempt.
        reported: (RunId, u32),
        /// The row's.
        logged: (Option<RunId>, Option<u32>),
    },
    /// A call stands in the books more than once.
    Duplicate {
        /// The call.
        call_id: CallId,
        /// The rows.
        request_ids: Vec<Excerpt>,
    },
}

/// Of a call's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Of the request.
    Input,
    /// Of the response.
    Output,
}

/// LiteLLM keeps costs as floating-point numbers, which not everybody writes in the same digits. One part in so many is no
/// difference of money.
const ROUNDING: f64 = 1e-12;

/// Compares them. Rows of calls that ended after `settled_until` may still be on their way.
pub fn reconcile(calls: &Calls, rows: &[SpendRow], settled_until: Timestamp) -> Reconciliation {
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
    /// Whether nothing differs.
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
            // Who refuses a call needn't write that down.
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

    /// Looks at a row that is of no reported call.
    fn add_stranger(&mut self, calls: &Calls, row: &SpendRow) {
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

/// Whose call it is, by the report and by its rows.
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

/// How much it was, by the report and by its rows.
fn differing_amounts(report: &UsageReport, rows: &[&SpendRow]) -> Vec<Difference> {
    let call_id = || report.usage_unit_id.clone();
    let mut differences = Vec::new();
    // What LiteLLM has tried in vain before it went well has a row of its own, which costs nothing.
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
            (Side::Input, report.input_tokens, [row.input_tokens, without_cached]),
            (Side::Output, report.output_tokens, [row.output_tokens; 2]),
        ] {
            if let Some(reported) = reported.filter(|reported| !logged.contains(reported)) {
                let logged = logged[0];
                differences.push(Difference::Tokens { call_id: call_id(), side, reported, logged });
            }
        }
    }
    differences
}

/// Whether it is the same amount. Where none was reported none may be billed.
fn is_same(reported: Option<&Cost>, logged: &CostTotal) -> bool {
    let Some(reported) = reported.map(Cost::to_total) else { return logged.is_zero() };
    let (one, other) = (reported.to_f64(), logged.to_f64());
    reported == *logged || (one - other).abs() <= ROUNDING * one.max(other)
}

#[cfg(test)]
mod tests;
