//! What a call of a model is billed by (`spec/2 §Invariants`, 10 to 12): one report for each call that an upstream answered,
//! made from what the host has recorded, and from nothing that a sandbox says.

mod totals;

pub use totals::{UsageSums, UsageTotals};

use crate::id::{CallId, RunId};
use crate::inference::{CallOutcome, CallRecord, Cost, Excerpt, ProviderKind};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What one call has used. Calls that failed in the middle, or whose client went away, have one too: with what is known.
///
/// Its JSON also has what follows from these members: `idempotency_key`, `executor_type`, `basis`, `is_degraded`. One in which
/// they say something else is no report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct UsageReport {
    /// The run that called.
    pub run_id: RunId,
    /// Which attempt of the run.
    pub attempt: u32,
    /// The call's id, as the upstream knows it.
    pub usage_unit_id: CallId,
    /// What the upstream is. With [`idempotency_key`](Self::idempotency_key) it says what is billed once and never twice.
    pub source: ProviderKind,
    /// The upstream's name in the configuration.
    pub provider: Excerpt,
    /// What the run is of, such as `sandbox:agent`.
    pub graph_id: Excerpt,
    /// Who pays.
    pub billing_account_id: Excerpt,
    /// The model, as the upstream knows it.
    pub model: Excerpt,
    /// When the call began (UTC).
    pub started_at: Timestamp,
    /// When it was over (UTC).
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The status that the upstream gave.
    pub upstream_status: u16,
    /// Tokens of the request, as the upstream reports them.
    pub input_tokens: Option<u64>,
    /// Tokens of the response, as the upstream reports them.
    pub output_tokens: Option<u64>,
    /// What it cost in US dollars, in the digits in which the upstream reports it.
    pub cost_usd: Option<Cost>,
}

/// Whose word about a call's cost is the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBasis {
    /// What LiteLLM writes down: a report is to be compared with that.
    SpendLogs,
    /// What the upstream says in its answer: it writes down nothing that could be compared.
    ProviderReported,
}

/// What carried out the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorType {
    /// A sandbox, which is all that there is here.
    Sandbox,
}

/// A report says something that does not follow from the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` does not follow from the rest of the report")]
pub struct InconsistentReportError {
    /// What does not.
    pub member: &'static str,
}

/// A report as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    idempotency_key: String,
    run_id: RunId,
    attempt: u32,
    usage_unit_id: CallId,
    source: ProviderKind,
    executor_type: ExecutorType,
    provider: Excerpt,
    graph_id: Excerpt,
    billing_account_id: Excerpt,
    model: Excerpt,
    started_at: Timestamp,
    ended_at: Timestamp,
    outcome: CallOutcome,
    upstream_status: u16,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd: Option<Cost>,
    basis: UsageBasis,
    is_degraded: bool,
}

/// Nothing is used by asking how long a request would be.
const COUNTS_TOKENS: &str = "/v1/messages/count_tokens";

// === impl UsageReport ===

impl UsageReport {
    /// What a call has used; none if no upstream answered, or none was asked.
    pub fn of(call: &CallRecord) -> Option<Self> {
        if matches!(call.outcome, CallOutcome::Denied { .. }) || call.route.path.as_str() == COUNTS_TOKENS {
            return None;
        }
        let usage = call.usage.as_ref();
        Some(Self {
            run_id: call.run_id.clone(),
            attempt: call.attempt,
            usage_unit_id: call.call_id.clone(),
            source: call.provider_kind?,
            provider: call.provider.clone()?,
            graph_id: call.graph_id.clone(),
            billing_account_id: call.billing_account_id.clone(),
            model: call.model_used.clone()?,
            started_at: call.started_at,
            ended_at: call.ended_at(),
            outcome: call.outcome.clone(),
            upstream_status: call.upstream_status?,
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            cost_usd: usage.and_then(|usage| usage.cost_usd.clone()),
        })
    }

    /// What a ledger keeps as its `source_reference`: two reports with the same one, from the same source, are one.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}/{}", self.run_id, self.attempt, self.usage_unit_id)
    }

    /// Whose word is the last.
    pub fn basis(&self) -> UsageBasis {
        match self.source {
            ProviderKind::LiteLlm => UsageBasis::SpendLogs,
            ProviderKind::OpenAi | ProviderKind::Anthropic | ProviderKind::Ollama => {
                UsageBasis::ProviderReported
            }
        }
    }

    /// Whether the upstream took the call and nobody knows what it cost: somebody has to look into it.
    pub fn is_degraded(&self) -> bool {
        self.was_accepted() && self.cost_usd.is_none()
    }

    /// Whether the upstream took the call; one that it refuses costs nothing.
    pub fn was_accepted(&self) -> bool {
        self.upstream_status < 400
    }
}

impl From<UsageReport> for Written {
    fn from(report: UsageReport) -> Self {
        Self {
            idempotency_key: report.idempotency_key(),
            executor_type: ExecutorType::Sandbox,
            basis: report.basis(),
            is_degraded: report.is_degraded(),
            run_id: report.run_id,
            attempt: report.attempt,
            usage_unit_id: report.usage_unit_id,
            source: report.source,
            provider: report.provider,
            graph_id: report.graph_id,
            billing_account_id: report.billing_account_id,
            model: report.model,
            started_at: report.started_at,
            ended_at: report.ended_at,
            outcome: report.outcome,
            upstream_status: report.upstream_status,
            input_tokens: report.input_tokens,
            output_tokens: report.output_tokens,
            cost_usd: report.cost_usd,
        }
    }
}

impl TryFrom<Written> for UsageReport {
    type Error = InconsistentReportError;

    fn try_from(written: Written) -> Result<Self, InconsistentReportError> {
        let report = Self {
            run_id: written.run_id,
            attempt: written.attempt,
            usage_unit_id: written.usage_unit_id,
            source: written.source,
            provider: written.provider,
            graph_id: written.graph_id,
            billing_account_id: written.billing_account_id,
            model: written.model,
            started_at: written.started_at,
            ended_at: written.ended_at,
            outcome: written.outcome,
            upstream_status: written.upstream_status,
            input_tokens: written.input_tokens,
            output_tokens: written.output_tokens,
            cost_usd: written.cost_usd,
        };
        let members = [
            ("idempotency_key", written.idempotency_key == report.idempotency_key()),
            ("basis", written.basis == report.basis()),
            ("is_degraded", written.is_degraded == report.is_degraded()),
        ];
        match members.into_iter().find(|(_, follows)| !follows) {
            Some((member, _)) => Err(InconsistentReportError { member }),
            None => Ok(report),
        }
    }
}
