//! What is spent and reserved of a budget. Every decision is made on all of it at once.

use super::{BudgetLimits, OUTPUT_TOKENS};
use crate::inference::demand::{Demand, LEAST_OUTPUT};
use crate::inference::refusal::Refusal;

/// Counts of one budget. Costs are in millionths of a dollar.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) calls: u64,
    pub(super) tokens: u64,
    pub(super) cost: u64,
    reserved_tokens: u64,
    reserved_cost: u64,
    under_way: usize,
    /// The dearest call so far.
    dearest: u64,
    /// Calls that ended before their cost was reported, while none had reported one.
    of_unknown_cost: u64,
    /// Whether a call that should cost something has ended without a reported cost.
    is_unpriced: bool,
}

/// What becomes of a call that wants to begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It has begun, with so much reserved for it.
    Begun { tokens: u64, cost: u64, output: Option<u64> },
    /// What is left doesn't cover it beside those under way; it may when one of them has ended.
    Wait,
}

/// So many calls may end before their cost is reported, when cost is limited and no call has reported one.
const MOST_OF_UNKNOWN_COST: u64 = 16;

// === impl State ===

impl State {
    /// Begins a call if what is left covers it. `may_wait` is false for a call that has waited for others long enough.
    pub(super) fn begin(
        &mut self,
        limits: &BudgetLimits,
        demand: &Demand,
        may_wait: bool,
    ) -> Result<Attempt, Refusal> {
        self.check_used_up(limits)?;
        if let Some(most) = limits.at_once
            && self.under_way >= most
        {
            return Err(Refusal::TooManyCalls { most });
        }
        let Some(cost) = self.cost_of_one(limits, may_wait)? else { return Ok(Attempt::Wait) };
        let Some((tokens, output)) = self.tokens_of(limits, demand, may_wait)? else {
            return Ok(Attempt::Wait);
        };
        self.calls += 1;
        self.under_way += 1;
        self.reserved_tokens = self.reserved_tokens.saturating_add(tokens);
        self.reserved_cost = self.reserved_cost.saturating_add(cost);
        Ok(Attempt::Begun { tokens, cost, output })
    }

    fn check_used_up(&self, limits: &BudgetLimits) -> Result<(), Refusal> {
        let is_used_up = |spent: u64, most: Option<u64>| most.is_some_and(|most| spent >= most);
        let used_up = [
            ("calls", is_used_up(self.calls, limits.calls)),
            ("tokens", is_used_up(self.tokens, limits.tokens)),
            ("cost", is_used_up(self.cost, limits.micro_dollars())),
            (
                "calls that ended before their cost was told",
                limits.cost.is_some() && self.of_unknown_cost >= MOST_OF_UNKNOWN_COST,
            ),
        ];
        match used_up.into_iter().find(|(_, is_used_up)| *is_used_up) {
            Some((what, _)) => Err(Refusal::BudgetExceeded { what }),
            None => Ok(()),
        }
    }

    /// What to reserve of a limited cost: the price of the dearest call so far. Until one has ended, and where less than that
    /// is left, calls are made one at a time; where providers report no cost, there is none to reserve. Nothing if this one has to wait for others.
    fn cost_of_one(&self, limits: &BudgetLimits, may_wait: bool) -> Result<Option<u64>, Refusal> {
        let Some(most) = limits.micro_dollars() else { return Ok(Some(0)) };
        let left = most.saturating_sub(self.cost.saturating_add(self.reserved_cost));
        let fits = self.dearest > 0 && self.dearest <= left;
        let is_unknown = self.dearest == 0 && self.is_unpriced;
        match self.under_way {
            0 => Ok(Some(self.dearest)),
            _ if is_unknown => Ok(Some(0)),
            _ if fits => Ok(Some(self.dearest)),
            _ if may_wait => Ok(None),
            _ => Err(Refusal::BudgetReserved { what: "cost" }),
        }
    }

    /// What to reserve of limited tokens, and the output limit that this allows. Nothing if the call has to wait for others.
    fn tokens_of(
        &self,
        limits: &BudgetLimits,
        demand: &Demand,
        may_wait: bool,
    ) -> Result<Option<(u64, Option<u64>)>, Refusal> {
        let Some(most) = limits.tokens else { return Ok(Some((0, None))) };
        let left = most.saturating_sub(self.tokens.saturating_add(self.reserved_tokens));
        let usual = limits.output_tokens.unwrap_or(OUTPUT_TOKENS);
        let wanted = demand.wanted_output(usual);
        let (total, affordable) = (demand.total(wanted), demand.affordable_output(left));
        let output = |granted| demand.has_output().then_some(granted);
        if total <= left {
            return Ok(Some((total, output(wanted))));
        }
        if may_wait && self.reserved_tokens > 0 {
            return Ok(None);
        }
        match affordable {
            Some(granted) if granted >= LEAST_OUTPUT => Ok(Some((demand.total(granted), output(granted)))),
            _ if self.reserved_tokens > 0 => Err(Refusal::BudgetReserved { what: "tokens" }),
            _ => Err(Refusal::BudgetTooSmall { left, least: demand.total(wanted.min(LEAST_OUTPUT)) }),
        }
    }

    /// Adds what a call has used. `is_whole` is false for one that ended before its provider has reported.
    pub(super) fn settle(&mut self, tokens: u64, cost: Option<u64>, (is_whole, is_free): (bool, bool)) {
        self.tokens = self.tokens.saturating_add(tokens);
        match cost {
            Some(cost) => {
                self.cost = self.cost.saturating_add(cost);
                self.dearest = self.dearest.max(cost);
            }
            None if is_whole => self.is_unpriced |= !is_free,
            None if self.dearest == 0 => self.of_unknown_cost = self.of_unknown_cost.saturating_add(1),
            None => self.cost = self.cost.saturating_add(self.dearest),
        }
    }

    /// Gives back what was reserved for a call that has ended.
    pub(super) fn release(&mut self, tokens: u64, cost: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.reserved_tokens = self.reserved_tokens.saturating_sub(tokens);
        self.reserved_cost = self.reserved_cost.saturating_sub(cost);
    }
}
