//! How much a run may have of models.

use super::observe::Usage;
use super::refusal::Refusal;
use belljar_contract::inference::ReportedUsage;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Limits, and what there is of them already.
#[derive(Debug, Default)]
pub struct Budget {
    limits: BudgetLimits,
    calls: AtomicU64,
    tokens: AtomicU64,
    /// In millionths of a dollar.
    cost: AtomicU64,
    /// Of the dearest call so far.
    dearest: AtomicU64,
    /// Calls that ended before their cost was told, while none had told one.
    of_unknown_cost: AtomicU64,
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
pub(crate) struct Reservation<'b> {
    budget: &'b Budget,
    /// Whether its provider has been asked, or may have been.
    pub(crate) is_sent: bool,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Whether its answer was passed on to the end.
    pub(crate) is_whole: bool,
    /// What was said and heard in it.
    pub(crate) bytes: u64,
}

const MICRO: f64 = 1e6;

/// So many calls may end before their cost is told, when there is a limit to it and nobody knows what a call costs.
const MOST_OF_UNKNOWN_COST: u64 = 16;

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
            (
                "calls that ended before their cost was told",
                limits.cost.is_some() && self.of_unknown_cost.load(Ordering::Relaxed) >= MOST_OF_UNKNOWN_COST,
            ),
        ];
        if let Some((what, _)) = used_up.into_iter().find(|(_, is_used_up)| *is_used_up) {
            return Err(Refusal::BudgetExceeded { what });
        }
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        let reservation = Reservation { budget: self, is_sent: false };
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
    /// Adds what the call has cost. Of one that ended before that was told, more is taken than it can have been: whoever
    /// hangs up in time would pay nothing otherwise. A token has a byte at least; and a call costs what the dearest did.
    pub(crate) fn spend(self, reported: Option<&ReportedUsage>, seen: &Usage, extent: Extent) {
        if !self.is_sent {
            return;
        }
        let budget = self.budget;
        let tokens = [seen.input_tokens, seen.output_tokens, seen.cache_tokens];
        let tokens = match tokens.iter().all(Option::is_none) && !extent.is_whole {
            true => extent.bytes,
            false => tokens.into_iter().flatten().fold(0, u64::saturating_add),
        };
        add(&budget.tokens, tokens);
        let cost = reported.and_then(|reported| reported.cost_usd.as_ref());
        // A cost is a finite number and not negative.
        let cost =
            cost.and_then(|cost| cost.as_str().parse::<f64>().ok()).map(|cost| (cost * MICRO).ceil() as u64);
        match cost {
            Some(cost) => {
                add(&budget.cost, cost);
                budget.dearest.fetch_max(cost, Ordering::Relaxed);
            }
            None if extent.is_whole => {}
            None => match budget.dearest.load(Ordering::Relaxed) {
                0 => add(&budget.of_unknown_cost, 1),
                dearest => add(&budget.cost, dearest),
            },
        }
    }
}

/// What was told by somebody else can be any number.
fn add(counter: &AtomicU64, more: u64) {
    let added = |count: u64| Some(count.saturating_add(more));
    // It always adds.
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::inference::{Cost, UsageSource};

    fn usage(input_tokens: Option<u64>, cost: Option<&str>) -> (Option<ReportedUsage>, Usage) {
        let cost_usd = cost.map(|cost| Cost::parse(cost).unwrap());
        let reported =
            ReportedUsage { source: UsageSource::Body, input_tokens, output_tokens: None, cost_usd };
        (Some(reported), Usage { input_tokens, ..Usage::default() })
    }

    /// A call that was made, of which so much is known.
    fn call(budget: &Budget, known: (Option<u64>, Option<&str>), is_whole: bool) -> Result<(), Refusal> {
        let mut reservation = budget.begin()?;
        reservation.is_sent = true;
        let (reported, seen) = usage(known.0, known.1);
        reservation.spend(reported.as_ref(), &seen, Extent { is_whole, bytes: 100 });
        Ok(())
    }

    #[test]
    fn what_is_used_up_is_refused_by_its_name() {
        let budget =
            Budget::new(BudgetLimits { tokens: Some(10), at_once: Some(1), ..BudgetLimits::default() });
        let first = budget.begin().unwrap();
        assert_eq!(budget.begin().unwrap_err(), Refusal::TooManyCalls { most: 1 });
        drop(first);
        call(&budget, (Some(9), Some("0.0000001")), true).unwrap();
        call(&budget, (Some(4), None), true).unwrap();
        assert_eq!(budget.begin().unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
        assert_eq!(budget.spent(), Spent { calls: 3, tokens: 13, cost: 0.000_001 });
        let calls = Budget::new(BudgetLimits { calls: Some(1), ..BudgetLimits::default() });
        drop(calls.begin().unwrap());
        assert_eq!(calls.begin().unwrap_err(), Refusal::BudgetExceeded { what: "calls" });
    }

    #[test]
    fn hanging_up_before_the_cost_is_told_saves_nothing() {
        let tokens = Budget::new(BudgetLimits { tokens: Some(150), ..BudgetLimits::default() });
        call(&tokens, (None, None), false).unwrap();
        call(&tokens, (None, None), false).unwrap();
        assert_eq!(tokens.begin().unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
        let cost = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
        call(&cost, (None, Some("0.4")), true).unwrap();
        call(&cost, (None, None), false).unwrap();
        call(&cost, (None, None), false).unwrap();
        assert_eq!(cost.begin().unwrap_err(), Refusal::BudgetExceeded { what: "cost" });
        let unknown = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
        let made = (0..100).take_while(|_| call(&unknown, (None, None), false).is_ok()).count() as u64;
        assert_eq!(made, MOST_OF_UNKNOWN_COST);
        // The control: whoever listens to the end pays what is said, be it nothing.
        let whole = Budget::new(BudgetLimits { cost: Some(1.0), tokens: Some(1), ..BudgetLimits::default() });
        assert!((0..100).all(|_| call(&whole, (None, None), true).is_ok()));
    }

    #[test]
    fn no_number_that_is_told_begins_anew_from_nothing() {
        let budget = Budget::new(BudgetLimits { tokens: Some(10), ..BudgetLimits::default() });
        call(&budget, (Some(9), None), true).unwrap();
        call(&budget, (Some(u64::MAX), Some("99999999999999999999")), true).unwrap();
        assert_eq!(budget.begin().unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
    }
}
