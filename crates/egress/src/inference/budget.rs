//! How much a run may have of models, and what its calls take of that.
//!
//! A call takes what it may cost at most before it is sent, and gives back what it has not used when its provider has reported:
//! calls that are made at once can't each take what is left. Without a limit nothing is reserved.

mod state;

use self::state::{Attempt, State};
use super::demand::Demand;
use super::observe::Usage;
use super::refusal::Refusal;
use crate::audit_quota::{AuditLimits, AuditQuota};
use belljar_contract::inference::{Cost, ReportedUsage};
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
    /// Dollars in all, as providers report them.
    pub cost: Option<f64>,
    /// Calls at a time.
    pub at_once: Option<usize>,
    /// Where tokens are limited: the output limit that a call gets which names none. [`OUTPUT_TOKENS`] if it isn't set.
    pub output_tokens: Option<u64>,
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
    /// Tokens; none where they aren't limited.
    tokens: u64,
    /// Millionths of a dollar.
    cost: u64,
    /// The output limit that holds for each choice, where tokens are limited.
    pub(crate) output: Option<u64>,
    /// Whether its provider charges for such a call.
    is_charged: bool,
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

/// The output limit of a call that names none, where tokens are limited and the configuration says nothing else: most models take
/// it, and few answers are longer.
pub const OUTPUT_TOKENS: u64 = 8_192;

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

    /// Whether calls reserve tokens, and so must say how many they take.
    pub(crate) fn limits_tokens(&self) -> bool {
        self.limits.tokens.is_some()
    }

    /// Begins a call, if what is left covers it: at once, or when others have ended. `demand` counts where tokens are limited.
    pub(crate) async fn begin(&self, demand: &Demand) -> Result<Reservation<'_>, Refusal> {
        let given_up = Instant::now() + PATIENCE;
        let mut may_wait = true;
        loop {
            // Before the look: a call that ends in between is not missed.
            let mut ended = std::pin::pin!(self.has_ended.notified());
            ended.as_mut().enable();
            let attempt = self.state().begin(&self.limits, demand, may_wait)?;
            match attempt {
                Attempt::Wait => may_wait = timeout_at(given_up, ended).await.is_ok(),
                Attempt::Begun { tokens, cost, output } => {
                    let is_charged = demand.is_charged();
                    return Ok(Reservation {
                        budget: self,
                        tokens,
                        cost,
                        output,
                        is_charged,
                        is_sent: false,
                    });
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
    /// Settles what the call has cost. One that ends before its provider has reported pays all that was reserved for it, or what has
    /// come if that is more: hanging up in time would save something otherwise.
    pub(crate) fn spend(self, reported: Option<&ReportedUsage>, seen: &Usage, extent: Extent) {
        if !self.is_sent {
            return;
        }
        let tokens = self.tokens_used(seen, extent);
        let cost = reported.and_then(|reported| reported.cost_usd.as_ref());
        let cost = cost.map(|cost: &Cost| cost.to_total().micro_dollars());
        let is_free = !self.is_charged || extent.is_error;
        self.budget.state().settle(tokens, cost, (extent.is_whole, is_free));
    }

    fn tokens_used(&self, seen: &Usage, extent: Extent) -> u64 {
        let counts = [seen.input_tokens, seen.output_tokens, seen.cache_tokens];
        let is_reported = counts.iter().any(Option::is_some);
        let reported = counts.into_iter().flatten().fold(0, u64::saturating_add);
        // A token has a byte at least. What isn't limited isn't reserved.
        let most = if self.budget.limits_tokens() { self.tokens } else { extent.bytes };
        // A provider may not hold the limit that it was sent: more may have come than was reserved.
        let received = if self.output.is_some() { seen.received_tokens } else { 0 };
        match (extent.is_whole, is_reported) {
            (false, _) => reported.max(most).max(received),
            (true, true) => reported,
            (true, false) if extent.is_error => 0,
            (true, false) if self.budget.limits_tokens() => most.min(extent.bytes).max(received),
            (true, false) => 0,
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.state().release(self.tokens, self.cost);
        self.budget.has_ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
