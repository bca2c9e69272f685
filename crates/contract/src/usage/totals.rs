//! Sums of usage reports, without rounding and without estimates.

use super::UsageReport;
use crate::inference::CostTotal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Total usage of the calls of a run, as their providers reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotals {
    /// Number of calls that a provider answered.
    pub calls: u64,
    /// Tokens of their requests, as far as reported; null if calls were answered and none were reported.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// Tokens of their responses, as far as reported; null if calls were answered and none were reported.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// US dollars as decimal text, exact to the last digit, as far as reported; null if calls were answered and none
    /// were reported.
    #[serde(default, deserialize_with = "exact_cost")]
    #[schemars(with = "Option<String>")]
    pub cost_usd: Option<CostTotal>,
    /// Number of calls that a provider accepted without reporting their cost.
    #[serde(default)]
    pub degraded_calls: u64,
    /// Number of calls that a provider accepted without reporting all of their tokens.
    #[serde(default)]
    pub uncounted_calls: u64,
    /// Number of calls that may have reached a provider and whose end is not recorded.
    #[serde(default)]
    pub unended_calls: u64,
}

/// Sums up reports, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageSums {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost: CostTotal,
    degraded_calls: u64,
    uncounted_calls: u64,
}

// === impl UsageTotals ===

impl Default for UsageTotals {
    /// Returns the totals of no calls.
    fn default() -> Self {
        UsageSums::default().totals(0)
    }
}

/// Reads a cost. Earlier versions wrote a number with each call rounded up, which no provider has reported; it is
/// dropped.
fn exact_cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CostTotal>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Number(_)) => Ok(None),
        Some(Value::String(text)) => CostTotal::try_from(text).map(Some).map_err(serde::de::Error::custom),
        Some(_) => Err(serde::de::Error::custom("`cost_usd` must be decimal text, or null")),
    }
}

// === impl UsageSums ===

impl UsageSums {
    /// Adds a report.
    pub fn add(&mut self, report: &UsageReport) {
        let UsageReport { input_tokens, output_tokens, cost_usd, .. } = report;
        let is_uncounted = report.was_accepted() && (input_tokens.is_none() || output_tokens.is_none());
        self.calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(input_tokens.unwrap_or_default());
        self.output_tokens = self.output_tokens.saturating_add(output_tokens.unwrap_or_default());
        cost_usd.iter().for_each(|cost| self.cost.add(cost));
        self.degraded_calls += u64::from(report.is_degraded());
        self.uncounted_calls += u64::from(is_uncounted);
    }

    /// Returns the sums, with the number of calls whose end is not recorded.
    pub fn totals(&self, unended_calls: u64) -> UsageTotals {
        let tokens = |sum: u64| (sum > 0 || self.uncounted_calls == 0).then_some(sum);
        UsageTotals {
            calls: self.calls,
            input_tokens: tokens(self.input_tokens),
            output_tokens: tokens(self.output_tokens),
            cost_usd: (!self.cost.is_zero() || self.degraded_calls == 0).then(|| self.cost.clone()),
            degraded_calls: self.degraded_calls,
            uncounted_calls: self.uncounted_calls,
            unended_calls,
        }
    }
}

impl<'r> FromIterator<&'r UsageReport> for UsageSums {
    fn from_iter<I: IntoIterator<Item = &'r UsageReport>>(reports: I) -> Self {
        let mut sums = Self::default();
        reports.into_iter().for_each(|report| sums.add(report));
        sums
    }
}
