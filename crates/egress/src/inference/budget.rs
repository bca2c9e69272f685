//! How much a run may have of models.

use super::observe::Usage;
use super::refusal::Refusal;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Limits, and what there is of them already.
#[derive(Debug, Default)]
pub struct Budget {
    limits: BudgetLimits,
    calls: AtomicU64,
    tokens: AtomicU64,
    /// In millionths of a dollar.
    cost: AtomicU64,
    under_way: AtomicUsize,
}

/// How much there may be. What isn't limited is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    /// Calls in all.
    pub calls: Option<u64>,
    /// Tokens in all, of what goes in and what comes out, as providers report them.
    pub tokens: Option<u64>,
    /// Dollars in all, as providers report them.
    pub cost: Option<f64>,
    /// Calls at a time.
    pub at_once: Option<usize>,
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

/// A call under way.
#[derive(Debug)]
pub(crate) struct Reservation<'b>(&'b Budget);

const MICRO: f64 = 1e6;

// === impl Budget ===

impl Budget {
    /// One with nothing spent.
    pub fn new(limits: BudgetLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What there has been.
    pub fn spent(&self) -> Spent {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent { calls: read(&self.calls), tokens: read(&self.tokens), cost: read(&self.cost) as f64 / MICRO }
    }

    /// Begins a call, if there may be one more. What a call costs is known only when it is over: those under way may
    /// together go beyond, and the next is refused.
    pub(crate) fn begin(&self) -> Result<Reservation<'_>, Refusal> {
        let (limits, spent) = (&self.limits, self.spent());
        let used_up = [
            ("calls", limits.calls.is_some_and(|most| spent.calls >= most)),
            ("tokens", limits.tokens.is_some_and(|most| spent.tokens >= most)),
            ("cost", limits.cost.is_some_and(|most| spent.cost >= most)),
        ];
        if let Some((what, _)) = used_up.into_iter().find(|(_, is_used_up)| *is_used_up) {
            return Err(Refusal::BudgetExceeded { what });
        }
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        let reservation = Reservation(self);
        match limits.at_once {
            Some(most) if under_way > most => Err(Refusal::TooManyCalls { most }),
            _ => {
                self.calls.fetch_add(1, Ordering::Relaxed);
                Ok(reservation)
            }
        }
    }
}

// === impl Reservation ===

impl Reservation<'_> {
    /// Adds what the call has cost.
    pub(crate) fn spend(&self, usage: &Usage) {
        let tokens =
            usage.input_tokens.unwrap_or_default().saturating_add(usage.output_tokens.unwrap_or_default());
        self.0.tokens.fetch_add(tokens, Ordering::Relaxed);
        // A cost is a finite number and not negative.
        let cost: f64 = usage.cost.as_ref().and_then(|cost| cost.as_str().parse().ok()).unwrap_or_default();
        let cost = (cost * MICRO).ceil() as u64;
        self.0.cost.fetch_add(cost, Ordering::Relaxed);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::inference::Cost;

    #[test]
    fn what_is_used_up_is_refused_by_its_name() {
        let budget =
            Budget::new(BudgetLimits { tokens: Some(10), at_once: Some(1), ..BudgetLimits::default() });
        let first = budget.begin().unwrap();
        assert_eq!(budget.begin().unwrap_err(), Refusal::TooManyCalls { most: 1 });
        first.spend(&Usage {
            input_tokens: Some(4),
            output_tokens: Some(5),
            cost: Cost::parse("0.0000001").ok(),
        });
        drop(first);
        let second = budget.begin().unwrap();
        second.spend(&Usage { input_tokens: Some(4), ..Usage::default() });
        drop(second);
        assert_eq!(budget.begin().unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
        assert_eq!(budget.spent(), Spent { calls: 2, tokens: 13, cost: 0.000_001 });
        let calls = Budget::new(BudgetLimits { calls: Some(1), ..BudgetLimits::default() });
        drop(calls.begin().unwrap());
        assert_eq!(calls.begin().unwrap_err(), Refusal::BudgetExceeded { what: "calls" });
    }
}
