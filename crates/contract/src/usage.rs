//! Usage reports for the billing of model calls (`docs/contracts/agents.md#a1.10`, `docs/contracts/agents.md#a1.11`): one
//! report for each call that an upstream answered. It is made from the host's records, never from claims of a sandbox.

mod totals;

pub use totals::{UsageSums, UsageTotals};

use crate::id::{CallId, RunId};
use crate::inference::{CallOutcome, CallRecord, Cost, Excerpt, ProviderKind};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Usage of a call. Calls that failed midway, or whose client disconnected, have a report too, with what is known.
///
/// Its JSON also has members that follow from these: `idempotency_key`, `executor_type`, `basis`, `is_degraded`. A
/// report in which they differ is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SerializedUsageReport", into = "SerializedUsageReport")]
pub struct UsageReport {
    /// The run that called.
    pub run_id: RunId,
    /// Number of the run's attempt.
    pub attempt: u32,
    /// The call's id, as the upstream knows it.
    pub usage_unit_id: CallId,
    /// Kind of the upstream. Together with [`idempotency_key`](Self::idempotency_key), it identifies what is billed
    /// only once.
    pub source: ProviderKind,
    /// The upstream's name in the configuration.
    pub provider: Excerpt,
    /// Graph of the run, for example `sandbox:agent`.
    pub graph_id: Excerpt,
    /// Account that pays.
    pub billing_account_id: Excerpt,
    /// The model, as the upstream knows it.
    pub model: Excerpt,
    /// Start of the call (UTC).
    pub started_at: Timestamp,
    /// End of the call (UTC).
    pub ended_at: Timestamp,
    /// Outcome of the call.
    pub outcome: CallOutcome,
    /// The status that the upstream gave.
    pub upstream_status: u16,
    /// Tokens of the request, as the upstream reports them.
    pub input_tokens: Option<u64>,
    /// Tokens of the response, as the upstream reports them.
    pub output_tokens: Option<u64>,
    /// Cost in US dollars, in the digits that the upstream reports.
    pub cost_usd: Option<Cost>,
}

/// Authoritative source for a call's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBasis {
    /// LiteLLM's spend logs: the report is to be compared with these.
    SpendLogs,
    /// The upstream's response: the upstream keeps no log to compare with.
    ProviderReported,
}

/// Executor of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorType {
    /// A sandbox, which is all that there is here.
    Sandbox,
}

/// A member of a report does not follow from the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` does not follow from the rest of the report")]
pub struct InconsistentReportError {
    /// The member.
    pub member: &'static str,
}

/// A report as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SerializedUsageReport {
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

/// Path of requests that only count tokens; they use nothing.
const COUNTS_TOKENS: &str = "/v1/messages/count_tokens";

// === impl UsageReport ===

impl UsageReport {
    /// Returns the usage of a call; `None` if no upstream was called or answered.
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

    /// Returns the key that a ledger stores as `source_reference`. Reports with the same key and source are the same
    /// report.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}/{}", self.run_id, self.attempt, self.usage_unit_id)
    }

    /// Returns the authoritative source for the cost.
    pub fn basis(&self) -> UsageBasis {
        match self.source {
            ProviderKind::LiteLlm => UsageBasis::SpendLogs,
            ProviderKind::OpenAi | ProviderKind::Anthropic | ProviderKind::Ollama => {
                UsageBasis::ProviderReported
            }
        }
    }

    /// Returns true if the upstream accepted the call but its cost is unknown: an operator has to investigate.
    pub fn is_degraded(&self) -> bool {
        self.was_accepted() && self.cost_usd.is_none()
    }

    /// Returns true if the upstream accepted the call. Rejected calls cost nothing.
    pub fn was_accepted(&self) -> bool {
        self.upstream_status < 400
    }
}

impl From<UsageReport> for SerializedUsageReport {
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

impl TryFrom<SerializedUsageReport> for UsageReport {
    type Error = InconsistentReportError;

    fn try_from(written: SerializedUsageReport) -> Result<Self, InconsistentReportError> {
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
