//! Budget of a run for model calls.
//!
//! Before a call is sent, its maximum cost is reserved. When the provider has reported, the unused part is given back. So
//! concurrent calls can't each use what is left. Nothing is reserved if there is no limit.

mod state;

use self::state::{BudgetState, Charge, ReservationAttempt, ReservedAmounts};
use super::models::Price;
use super::observe::Usage;
use super::refusal::Refusal;
use super::token_demand::Demand;
use crate::audit_quota::{AuditLimits, AuditQuota};
use belljar_contract::inference::{Cost, ReportedUsage, UsageSource};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Limits of a budget, and what is spent and reserved.
#[derive(Debug)]
pub struct Budget {
    limits: BudgetLimits,
    state: Mutex<BudgetState>,
    /// Quota of audit records.
    pub(crate) audit: AuditQuota,
    /// Notified each time a call has ended.
    has_ended: Notify,
}

/// Limits of a budget. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// Maximum number of calls.
    pub calls: Option<u64>,
    /// Maximum number of tokens, input and output together.
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars, as providers report it or by the stated prices.
    pub cost: Option<f64>,
    /// Maximum number of concurrent calls.
    pub at_once: Option<usize>,
    /// Output limit in tokens of a call that names none, where tokens or cost by a stated price are limited. Default:
    /// [`OUTPUT_TOKENS`].
    pub output_tokens: Option<u64>,
    /// Number of tokens that the files of one request count as, without images, under the same limits. Default:
    /// [`FILE_TOKENS`].
    pub file_tokens: Option<u64>,
    /// Limits on audit records of calls.
    pub audit: AuditLimits,
}

/// Usage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetUsage {
    /// Number of calls.
    pub calls: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Cost in US dollars.
    pub cost: f64,
}

/// Call under way, with what is reserved for it.
#[derive(Debug)]
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    grant: ReservedAmounts,
    /// Stated price of its model.
    price: Option<Price>,
    /// True if the provider charges for such a call.
    is_charged: bool,
    /// True if the call generates output.
    has_output: bool,
    /// True if the request was sent to the provider, or may have been.
    pub(crate) is_sent: bool,
}

/// Progress of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallProgress {
    /// True if the answer was forwarded to its end.
    pub(crate) is_whole: bool,
    /// True if the provider answered with an error, which costs nothing unless it reports a cost.
    pub(crate) is_error: bool,
    /// Bytes sent and received.
    pub(crate) bytes: u64,
}

/// Way in which a call ended. It decides what the call is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnding {
    /// Complete, with a final report of all tokens.
    Reported,
    /// Complete, with a partial report or none.
    Unreported,
    /// With an error instead of an answer.
    Error,
    /// Incomplete: cut off, without the event that ends a stream, or as an incomplete document.
    Broken,
}

/// Default output limit in tokens of a call that names none, where tokens are limited: most models accept it, and few answers
/// are longer.
pub const OUTPUT_TOKENS: u64 = 8_192;

/// Default number of tokens that all documents, recordings and videos of one request count as: no more fits into the context of
/// common models.
pub const FILE_TOKENS: u64 = 1_048_576;

/// Maximum time that a call waits for others to end if the rest of the budget doesn't cover all of them: 60 s.
const PATIENCE: Duration = Duration::from_secs(60);

const MICRO: f64 = 1e6;

// === impl BudgetLimits ===

impl BudgetLimits {
    /// Returns the cost limit in millionths of a dollar.
    fn micro_dollars(&self) -> Option<u64> {
        // Limits are stated in thousandths of a dollar.
        self.cost.map(|dollars| (dollars * MICRO).round() as u64)
    }
}

// === impl Budget ===

impl Budget {
    /// Creates a budget of which nothing is spent.
    pub fn new(limits: BudgetLimits) -> Self {
        let audit = AuditQuota::new(limits.audit);
        Self { limits, state: Mutex::default(), audit, has_ended: Notify::new() }
    }

    /// Returns the usage so far.
    pub fn spent(&self) -> BudgetUsage {
        let state = self.state();
        BudgetUsage { calls: state.calls, tokens: state.tokens, cost: state.cost as f64 / MICRO }
    }

    /// Returns true if calls of a model at that price have to reserve their maximum, so that their size must be known.
    pub(crate) fn limits_size(&self, price: Option<Price>) -> bool {
        let is_charged = price.is_some_and(|price| price != Price::FREE);
        self.limits.tokens.is_some() || (self.limits.cost.is_some() && is_charged)
    }

    /// Returns the number of tokens that the files of one request count as.
    pub(crate) fn file_tokens(&self) -> u64 {
        self.limits.file_tokens.unwrap_or(FILE_TOKENS)
    }

    /// Begins a call once the rest of the budget covers it: at once, or after others have ended. `demand` counts where
    /// [`Self::limits_size`] returns true.
    pub(crate) async fn begin(
        &self,
        demand: &Demand,
        price: Option<Price>,
    ) -> Result<Reservation<'_>, Refusal> {
        let given_up = Instant::now() + PATIENCE;
        let mut may_wait = true;
        loop {
            // Registered before the attempt, so that a call that ends in between is not missed.
            let mut ended = std::pin::pin!(self.has_ended.notified());
            ended.as_mut().enable();
            let attempt = self.state().begin(&self.limits, (demand, price), may_wait)?;
            match attempt {
                ReservationAttempt::Wait => may_wait = timeout_at(given_up, ended).await.is_ok(),
                ReservationAttempt::Begun(grant) => {
                    let (is_charged, has_output) = (demand.is_charged(), demand.has_output());
                    let is_sent = false;
                    return Ok(Reservation { budget: self, grant, price, is_charged, has_output, is_sent });
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        // No panic can leave the value half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Reservation ===

impl Reservation<'_> {
    /// Returns the output limit for each choice, if one has to be set.
    pub(crate) fn output(&self) -> Option<u64> {
        self.grant.output
    }

    /// Settles the cost of the call. A call that ends before the provider's final report is charged all that was reserved, or
    /// what has come if that is more. Otherwise a client could save by hanging up in time or by making a stream fail.
    pub(crate) fn spend(self, reported: Option<&ReportedUsage>, seen: &Usage, extent: CallProgress) {
        if !self.is_sent {
            return;
        }
        let ending = self.ending(seen, extent);
        let tokens = self.tokens_used(seen, (ending, extent));
        let in_head = reported.is_some_and(|reported| reported.source == UsageSource::Header);
        let cost = reported.and_then(|reported| reported.cost_usd.as_ref());
        let cost = cost.map(|cost: &Cost| cost.to_total().micro_dollars());
        let least = cost.unwrap_or_default();
        let is_free = !self.is_charged || ending == CallEnding::Error;
        let charge = match (cost, self.price) {
            (Some(cost), _) if in_head || seen.is_final => Charge::Known(cost),
            _ if is_free => Charge::Known(least),
            // A cost that is reported before the end is only the cost up to then.
            (_, Some(price)) => Charge::Known(self.stated_cost(price, seen, ending).max(least)),
            (_, None) if self.grant.is_unpriced => Charge::Unknown { least },
            (_, None) => Charge::Known(least),
        };
        self.budget.state().settle(tokens, charge);
    }

    fn ending(&self, seen: &Usage, extent: CallProgress) -> CallEnding {
        let has_counts = seen.input_tokens.is_some() && (seen.output_tokens.is_some() || !self.has_output);
        match extent.is_whole {
            true if seen.is_final && has_counts => CallEnding::Reported,
            true if extent.is_error => CallEnding::Error,
            true if seen.is_ended => CallEnding::Unreported,
            _ => CallEnding::Broken,
        }
    }

    fn tokens_used(&self, seen: &Usage, (ending, extent): (CallEnding, CallProgress)) -> u64 {
        let reported = seen.tokens().unwrap_or_default();
        let is_limited = self.budget.limits.tokens.is_some();
        // A token has at least one byte. Nothing is reserved where nothing is limited.
        let most = if is_limited { self.grant.tokens } else { extent.bytes };
        // A provider may exceed the limit that it was sent, so more may have come than was reserved.
        let received = if self.grant.output.is_some() { seen.received_tokens } else { 0 };
        match ending {
            CallEnding::Reported => reported,
            CallEnding::Error => 0,
            CallEnding::Unreported if is_limited => most.min(extent.bytes).max(received).max(reported),
            CallEnding::Broken if is_limited || !extent.is_whole => reported.max(most).max(received),
            CallEnding::Unreported | CallEnding::Broken => reported,
        }
    }

    /// Returns the cost by the stated price, in millionths of a dollar: by the tokens if all are reported, otherwise everything
    /// that was reserved.
    fn stated_cost(&self, price: Price, seen: &Usage, ending: CallEnding) -> u64 {
        let input =
            seen.input_tokens.unwrap_or_default().saturating_add(seen.cache_tokens.unwrap_or_default());
        let output = seen.output_tokens.unwrap_or_default();
        match ending {
            CallEnding::Reported => price.micro_dollars(input, output),
            _ => price.micro_dollars(input, output.max(seen.received_tokens)).max(self.grant.cost),
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.state().release(self.grant);
        self.budget.has_ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
