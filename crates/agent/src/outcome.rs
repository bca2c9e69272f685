//! The outcome of an agent's run: `GraphFinal` (`docs/contracts/agents.md#a5.4`).

use super::catalogue::OutputForm;
use super::envelope::Answer;
use super::event::UsageReporter;
use super::failure;
use belljar_contract::agent::{AgentFailure, FinishReason, GraphErrorCode};
use belljar_contract::id::RunId;
use belljar_contract::text::with_causes as chain;
use belljar_contract::usage::{UsageReport, UsageTotals};
use belljar_execution::run_once::{OnceCode, OnceResult};
use belljar_journal::usage::RecordedCalls;
use belljar_policy::grant::GrantRefusal;

/// The outcome of an agent's run.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFinal {
    /// The run.
    pub run_id: RunId,
    /// Its graph, such as `sandbox:codex`.
    pub graph_id: String,
    /// Why it failed; `None` if it succeeded.
    pub failure: Option<AgentFailure>,
    /// The agent's answer.
    pub content: String,
    /// Usage of each listed call, in the order of the calls.
    pub usage: Vec<UsageReport>,
    /// Usage of all calls.
    pub totals: UsageTotals,
}

// === impl GraphFinal ===

impl GraphFinal {
    /// Returns the outcome of a run.
    pub fn of(result: &OnceResult, graph_id: &str, form: OutputForm) -> Self {
        let (content, failure) = judged(result, form);
        let billed: RecordedCalls = result.calls.listed.iter().collect();
        Self {
            run_id: result.run_id.clone(),
            graph_id: graph_id.to_owned(),
            failure,
            content,
            usage: billed.reports().to_vec(),
            totals: result.usage.clone(),
        }
    }

    /// Returns the outcome of a run whose grant was refused: nothing was run.
    pub fn refused(run_id: RunId, graph_id: String, refusal: &GrantRefusal) -> Self {
        let why = AgentFailure::new(GraphErrorCode::InvalidRequest, refusal.code(), &refusal.to_string());
        Self {
            run_id,
            graph_id,
            failure: Some(why),
            content: String::new(),
            usage: Vec::new(),
            totals: UsageTotals::default(),
        }
    }

    /// Returns true if it succeeded.
    pub fn is_ok(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns how it ended.
    pub fn finish_reason(&self) -> FinishReason {
        if self.is_ok() { FinishReason::Stop } else { FinishReason::Error }
    }

    /// Reports the usage and the end.
    pub fn tell(&self, mut billing: UsageReporter<'_>) {
        self.usage.iter().for_each(|fact| billing.usage(fact.clone()));
        match &self.failure {
            None => billing.finish(&self.content),
            Some(failure) => billing.fail(failure.clone()),
        }
    }
}

/// Returns the agent's text, and the failure if there is one.
fn judged(result: &OnceResult, form: OutputForm) -> (String, Option<AgentFailure>) {
    let calls = &result.calls.listed;
    let of_run = result.error_code.map(|code| failure::of_run(code, &reason(code, result)));
    let of_exit = || (result.exit_code != 0).then(|| failure::of_exit_code(result.exit_code, calls));
    match Answer::of(&result.stdout, form) {
        Answer::Text(text) => (text, of_run.or_else(of_exit)),
        Answer::Envelope { text, error } => {
            let of_agent = || error.as_ref().map(|error| failure::of_agent(error, calls));
            (text, of_run.or_else(of_agent).or_else(of_exit))
        }
        Answer::Malformed { why } => {
            let malformed = || AgentFailure::new(GraphErrorCode::Internal, "parse_error", why);
            // If an envelope is required, a non-zero exit code explains its absence, and is reported instead.
            let of_exit = || of_exit().filter(|_| form == OutputForm::Envelope);
            (String::new(), of_run.or_else(of_exit).or_else(|| Some(malformed())))
        }
    }
}

fn reason(code: OnceCode, result: &OnceResult) -> String {
    let why = match code {
        OnceCode::Timeout => "its time was over",
        OnceCode::OomKilled => "its memory was used up",
        OnceCode::DiskFull => "it has written more than it may",
        OnceCode::Canceled => "it was canceled",
        OnceCode::OutputTruncated => "it has printed more than is kept",
        OnceCode::ContainerFailed => "it could not be started",
        OnceCode::Internal => "something around it failed",
    };
    result.cause.as_ref().map_or_else(|| why.to_owned(), |cause| format!("{why}: {}", chain(cause)))
}
