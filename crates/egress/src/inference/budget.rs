//! How much a run may have of models, and what its calls take of that.
//!
//! A call takes what it may cost at most before it is sent, and gives back what it has not used when its provider has reported:
//! calls that are made at once can't each take what is left. Without a limit nothing is reserved.

mod state;

use self::state::{Attempt, Charge, Grant, State};
use super::demand::Demand;
use super::models::Price;
use super::observe::Usage;
use super::refusal::Refusal;
use crate::audit_quota::{AuditLimits, AuditQuota};
use belljar_contract::inference::{Cost, ReportedUsage, UsageSource};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Limits, and what is spent and reserved of them.
#[derive(Debug)]
pub struct Budget {
    limits: BudgetLimits,
    state: Mutex<State>,
    /// How much is recorded.
    pub(crate) audit: AuditQuota,
    /// Told each time that a call has ended.
    has_ended: Notify,
}

/// How much there may be. What isn't limited is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// Calls in all.
    pub calls: Option<u64>,
    /// Tokens in all, of what goes in and what comes out.
    pub tokens: Option<u64>,
    /// Dollars in all, as providers report them, or by the prices that are stated.
    pub cost: Option<f64>,
    /// Calls at a time.
    pub at_once: Option<usize>,
    /// Where tokens or costs by a stated price are limited: the output limit that a call gets which names none. [`OUTPUT_TOKENS`] if it isn't set.
    pub output_tokens: Option<u64>,
    /// There, too: the tokens that the files of one request count as, images aside. [`FILE_TOKENS`] if it isn't set.
    pub file_tokens: Option<u64>,
    /// How much of its calls may be recorded.
    pub audit: AuditLimits,
}

/// What a run has had.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Calls.
    pub calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Dollars.
    pub cost: f64,
}

/// A call under way, with what is reserved for it.
#[derive(Debug)]
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    grant: Grant,
    /// The price that is stated for its model.
    price: Option<Price>,
    /// Whether its provider charges for such a call.
    is_charged: bool,
    /// Whether it generates anything.
    has_output: bool,
    /// Whether its provider has been asked, or may have been.
    pub(crate) is_sent: bool,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Whether its answer was passed on to the end.
    pub(crate) is_whole: bool,
    /// Whether the provider has answered with an error, which costs nothing unless it reports a cost.
    pub(crate) is_error: bool,
    /// Bytes sent and received in it.
    pub(crate) bytes: u64,
}

/// How a call has ended, as far as that decides what it pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Whole, with a final report of all its tokens.
    Reported,
    /// Whole, with some of them or none.
    Unreported,
    /// With an error in place of an answer.
    Error,
    /// Before its end: cut off, without the event that ends a stream, or as a document that isn't complete.
    Broken,
}

/// The output limit of a call that names none, where tokens are limited and the configuration says nothing else: most models take
/// it, and few answers are longer.
pub const OUTPUT_TOKENS: u64 = 8_192;

/// What all documents, recordings and videos of one request count as, where the configuration says nothing else: no more fits into
/// the context of common models.
pub const FILE_TOKENS: u64 = 1_048_576;

/// How long a call waits for others to end when what is left doesn't cover all of them.
const PATIENCE: Duration = Duration::from_secs(60);

const MICRO: f64 = 1e6;

// === impl BudgetLimits ===

impl BudgetLimits {
    /// In millionths of a dollar.
    fn micro_dollars(&self) -> Option<u64> {
        // Limits are written in thousandths of a dollar.
        self.cost.map(|dollars| (dollars * MICRO).round() as u64)
    }
}

// === impl Budget ===

impl Budget {
    /// One with nothing spent.
    pub fn new(limits: BudgetLimits) -> Self {
        let audit = AuditQuota::new(limits.audit);
        Self { limits, state: Mutex::default(), audit, has_ended: Notify::new() }
    }

    /// What there has been.
    pub fn spent(&self) -> Spent {
        let state = self.state();
        Spent { calls: state.calls, tokens: state.tokens, cost: state.cost as f64 / MICRO }
    }

    /// Whether calls of a model at that price reserve what they take at most, and so must say how much that is.
    pub(crate) fn limits_size(&self, price: Option<Price>) -> bool {
        let is_charged = price.is_some_and(|price| price != Price::FREE);
        self.limits.tokens.is_some() || (self.limits.cost.is_some() && is_charged)
    }

    /// The tokens that the files of one request count as.
    pub(crate) fn file_tokens(&self) -> u64 {
        self.limits.file_tokens.unwrap_or(FILE_TOKENS)
    }

    /// Begins a call, if what is left covers it: at once, or when others have ended. `demand` counts where [`Self::limits_size`]
    /// says so.
    pub(crate) async fn begin(
        &self,
        demand: &Demand,
        price: Option<Price>,
    ) -> Result<Reservation<'_>, Refusal> {
        let given_up = Instant::now() + PATIENCE;
        let mut may_wait = true;
        loop {
            // Before the look: a call that ends in between is not missed.
            let mut ended = std::pin::pin!(self.has_ended.notified());
            ended.as_mut().enable();
            let attempt = self.state().begin(&self.limits, (demand, price), may_wait)?;
            match attempt {
                Attempt::Wait => may_wait = timeout_at(given_up, ended).await.is_ok(),
                Attempt::Begun(grant) => {
                    let (is_charged, has_output) = (demand.is_charged(), demand.has_output());
                    let is_sent = false;
                    return Ok(Reservation { budget: self, grant, price, is_charged, has_output, is_sent });
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in there is ever half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Reservation ===

impl Reservation<'_> {
    /// The output limit that holds for each choice, where one has to be set.
    pub(crate) fn output(&self) -> Option<u64> {
        self.grant.output
    }

    /// Settles what the call has cost. One that ends before its provider's final report pays all that was reserved for it, or what has
    /// come if that is more: hanging up in time, or a stream that ends with an error, would save something otherwise.
    pub(crate) fn spend(self, reported: Option<&ReportedUsage>, seen: &Usage, extent: Extent) {
        if !self.is_sent {
            return;
        }
        let ending = self.ending(seen, extent);
        let tokens = self.tokens_used(seen, (ending, extent));
        let in_head = reported.is_some_and(|reported| reported.source == UsageSource::Header);
        let cost = reported.and_then(|reported| reported.cost_usd.as_ref());
        let cost = cost.map(|cost: &Cost| cost.to_total().micro_dollars());
        let least = cost.unwrap_or_default();
        let is_free = !self.is_charged || ending == Ending::Error;
        let charge = match (cost, self.price) {
            (Some(cost), _) if in_head || seen.is_final => Charge::Known(cost),
            _ if is_free => Charge::Known(least),
            // A cost that is reported before the end says what it was by then, and no more.
            (_, Some(price)) => Charge::Known(self.stated_cost(price, seen, ending).max(least)),
            (_, None) if self.grant.is_unpriced => Charge::Unknown { least },
            (_, None) => Charge::Known(least),
        };
        self.budget.state().settle(tokens, charge);
    }

    fn ending(&self, seen: &Usage, extent: Extent) -> Ending {
        let has_counts = seen.input_tokens.is_some() && (seen.output_tokens.is_some() || !self.has_output);
        match extent.is_whole {
            true if seen.is_final && has_counts => Ending::Reported,
            true if extent.is_error => Ending::Error,
            true if seen.is_ended => Ending::Unreported,
            _ => Ending::Broken,
        }
    }

    fn tokens_used(&self, seen: &Usage, (ending, extent): (Ending, Extent)) -> u64 {
        let reported = seen.tokens().unwrap_or_default();
        let is_limited = self.budget.limits.tokens.is_some();
        // A token has a byte at least. What isn't limited isn't reserved.
        let most = if is_limited { self.grant.tokens } else { extent.bytes };
        // A provider may not hold the limit that it was sent: more may have come than was reserved.
        let received = if self.grant.output.is_some() { seen.received_tokens } else { 0 };
        match ending {
            Ending::Reported => reported,
            Ending::Error => 0,
            Ending::Unreported if is_limited => most.min(extent.bytes).max(received).max(reported),
            Ending::Broken if is_limited || !extent.is_whole => reported.max(most).max(received),
            Ending::Unreported | Ending::Broken => reported,
        }
    }

    /// What a call has cost by the price that is stated for its model, in millionths of a dollar: by its tokens if all of them are
    /// reported, otherwise all that was reserved.
    fn stated_cost(&self, price: Price, seen: &Usage, ending: Ending) -> u64 {
        let input =
            seen.input_tokens.unwrap_or_default().saturating_add(seen.cache_tokens.unwrap_or_default());
        let output = seen.output_tokens.unwrap_or_default();
        match ending {
            Ending::Reported => price.micro_dollars(input, output),
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
