//! What came of an agent's run: `GraphFinal` (`spec/2 §Graph Execution Flow`), and what it was made from.

use super::envelope::Answer;
use super::event::{Billing, FinishReason};
use super::failure::{Failure, GraphCode};
use crate::once::{OnceCode, OnceResult};
use belljar_contract::id::RunId;
use belljar_contract::inference::CostTotal;
use belljar_contract::usage::UsageReport;
use serde::Serialize;

/// What came of an agent's run.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFinal {
    /// The run.
    pub run_id: RunId,
    /// What it was of, such as `sandbox:codex`.
    pub graph_id: String,
    /// Why it failed; nothing if it ended well.
    pub failure: Option<Failure>,
    /// What the agent has said.
    pub content: String,
    /// What each of its calls has used, in the order of the calls.
    pub usage: Vec<UsageReport>,
}

/// What all calls together have used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// How many calls there were.
    pub calls: u64,
    /// Tokens of requests.
    pub input_tokens: u64,
    /// Tokens of responses.
    pub output_tokens: u64,
    /// Dollars, to the last digit of each.
    pub cost_usd: CostTotal,
    /// Calls of which nobody knows what they have cost.
    pub without_cost: u64,
}

// === impl GraphFinal ===

impl GraphFinal {
    /// Reads it off a run.
    pub fn of(result: &OnceResult, graph_id: &str) -> Self {
        let (content, failure) = judged(result);
        Self {
            run_id: result.run_id.clone(),
            graph_id: graph_id.to_owned(),
            failure,
            content,
            usage: result.calls.listed.iter().filter_map(UsageReport::of).collect(),
        }
    }

    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.failure.is_none()
    }

    /// How it ended.
    pub fn finish_reason(&self) -> FinishReason {
        if self.is_ok() { FinishReason::Stop } else { FinishReason::Error }
    }

    /// Tells what is left to tell.
    pub fn tell(&self, mut billing: Billing<'_>) {
        self.usage.iter().for_each(|fact| billing.usage(fact.clone()));
        match &self.failure {
            None => billing.finish(&self.content),
            Some(failure) => billing.fail(failure.clone()),
        }
    }

    /// What all calls together have used.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for report in &self.usage {
            totals.calls += 1;
            totals.input_tokens += report.input_tokens.unwrap_or_default();
            totals.output_tokens += report.output_tokens.unwrap_or_default();
            match &report.cost_usd {
                Some(cost) => totals.cost_usd.add(cost),
                None => totals.without_cost += 1,
            }
        }
        totals
    }
}

/// What was said, and why it counts for nothing, if it doesn't.
fn judged(result: &OnceResult) -> (String, Option<Failure>) {
    let calls = &result.calls.listed;
    let of_run = result.error_code.map(|code| Failure::of_run(code, &reason(code, result)));
    let of_exit = || (result.exit_code != 0).then(|| Failure::of_exit_code(result.exit_code, calls));
    match Answer::read(&result.stdout) {
        Answer::Text(text) => (text, of_run.or_else(of_exit)),
        Answer::Envelope { text, error } => {
            let of_agent = || error.as_ref().map(|error| Failure::of_agent(error, calls));
            (text, of_run.or_else(of_agent).or_else(of_exit))
        }
        Answer::Malformed { why } => {
            let malformed = || Failure::new(GraphCode::Internal, "parse_error", why);
            (String::new(), Some(of_run.unwrap_or_else(malformed)))
        }
    }
}

fn reason(code: OnceCode, result: &OnceResult) -> String {
    let why = match code {
        OnceCode::Timeout => "its time was over",
        OnceCode::OomKilled => "its memory was used up",
        OnceCode::DiskFull => "it has written more than it may",
        OnceCode::Canceled => "somebody wanted it to stop",
        OnceCode::OutputTruncated => "it has printed more than is kept",
        OnceCode::ContainerFailed => "it could not be started",
        OnceCode::Internal => "something around it failed",
    };
    result.cause.as_ref().map_or_else(|| why.to_owned(), |cause| format!("{why}: {}", chain(cause)))
}

/// An error and its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
