//! Amounts that are spent and reserved of a budget. Every decision considers all of them at once.
//!
//! Two limits work by a call's maximum: tokens, and cost where a price is stated for the model. The cost of a call without a
//! stated price is unknown until it has ended. So such calls run one at a time, and only a few may end without a reported cost.

use super::{BudgetLimits, OUTPUT_TOKENS};
use crate::inference::models::Price;
use crate::inference::refusal::Refusal;
use crate::inference::token_demand::{Demand, LEAST_OUTPUT};

/// Counters of one budget. Costs are in millionths of a dollar.
#[derive(Debug, Default)]
pub(super) struct BudgetState {
    pub(super) calls: u64,
    pub(super) tokens: u64,
    pub(super) cost: u64,
    reserved_tokens: u64,
    reserved_cost: u64,
    under_way: usize,
    /// Calls under way without a stated price, where cost is limited.
    unpriced: usize,
    /// Cost of the most expensive call so far.
    dearest: u64,
    /// Number of calls without a stated price that ended without a reported cost.
    of_unknown_cost: u64,
}

/// Result of a call's attempt to begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReservationAttempt {
    /// The call has begun.
    Begun(ReservedAmounts),
    /// The rest of the budget doesn't cover the call now, but may once another call has ended.
    Wait,
}

/// Amounts that are reserved for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReservedAmounts {
    pub(super) tokens: u64,
    /// Millionths of a dollar.
    pub(super) cost: u64,
    /// Output limit for each choice, if one has to be set.
    pub(super) output: Option<u64>,
    /// True if cost is limited and no price is stated for the call's model.
    pub(super) is_unpriced: bool,
}

/// Cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// Cost as reported or by the stated price, in millionths of a dollar.
    Known(u64),
    /// No final cost was reported and no price is stated. It is at least this, in millionths of a dollar.
    Unknown { least: u64 },
}

/// One limit: what is left of it, and what each token takes of that.
struct Meter {
    what: &'static str,
    left: u64,
    rate: Price,
    /// True if calls under way may give something back.
    is_reserved: bool,
}

/// Maximum number of calls that may end without a reported cost, where cost is limited and no price is stated.
const MOST_OF_UNKNOWN_COST: u64 = 16;

/// Stated prices are in billionths of a dollar, cost limits in millionths.
const NANOS_OF_MICRO: u64 = 1_000;

/// Each token takes one of a token limit.
const TOKEN: Price = Price { input: 1, output: 1 };

// === impl BudgetState ===

impl BudgetState {
    /// Begins a call if the rest of the budget covers it. `may_wait` is false for a call that has already waited long enough.
    pub(super) fn begin(
        &mut self,
        limits: &BudgetLimits,
        (demand, price): (&Demand, Option<Price>),
        may_wait: bool,
    ) -> Result<ReservationAttempt, Refusal> {
        self.check_used_up(limits)?;
        if let Some(most) = limits.at_once
            && self.under_way >= most
        {
            return Err(Refusal::TooManyCalls { most });
        }
        let is_unpriced = limits.cost.is_some() && price.is_none() && demand.is_charged();
        if is_unpriced && !self.has_room_for_unpriced(limits, may_wait)? {
            return Ok(ReservationAttempt::Wait);
        }
        let meters = self.meters(limits, price);
        let Some(output) = granted(&meters, limits, demand, may_wait)? else {
            return Ok(ReservationAttempt::Wait);
        };
        let taken = |what: &str| {
            let meter = meters.iter().find(|meter| meter.what == what);
            meter.map_or(0, |meter| demand.takes(output, meter.rate))
        };
        let sets_output = demand.has_output() && meters.iter().any(|meter| meter.rate.output > 0);
        let grant = ReservedAmounts {
            tokens: taken("tokens"),
            cost: if is_unpriced { self.dearest } else { taken("cost").div_ceil(NANOS_OF_MICRO) },
            output: sets_output.then_some(output),
            is_unpriced,
        };
        self.hold(grant);
        Ok(ReservationAttempt::Begun(grant))
    }

    fn check_used_up(&self, limits: &BudgetLimits) -> Result<(), Refusal> {
        let is_used_up = |spent: u64, most: Option<u64>| most.is_some_and(|most| spent >= most);
        let used_up = [
            ("calls", is_used_up(self.calls, limits.calls)),
            ("tokens", is_used_up(self.tokens, limits.tokens)),
            ("cost", is_used_up(self.cost, limits.micro_dollars())),
        ];
        match used_up.into_iter().find(|(_, is_used_up)| *is_used_up) {
            Some((what, _)) => Err(Refusal::BudgetExceeded { what }),
            None => Ok(()),
        }
    }

    /// Returns true if a call of unknown cost may begin: as the only one of its kind, while something is left beside what is
    /// reserved. So only this one call can exceed the limit. Returns false if it has to wait for others.
    fn has_room_for_unpriced(&self, limits: &BudgetLimits, may_wait: bool) -> Result<bool, Refusal> {
        if self.of_unknown_cost >= MOST_OF_UNKNOWN_COST {
            return Err(Refusal::CostUnknown { most: MOST_OF_UNKNOWN_COST });
        }
        match self.unpriced == 0 && self.left_of_cost(limits).is_none_or(|left| left > 0) {
            true => Ok(true),
            false if may_wait => Ok(false),
            false => Err(Refusal::BudgetReserved { what: "cost" }),
        }
    }

    fn left_of_cost(&self, limits: &BudgetLimits) -> Option<u64> {
        Some(limits.micro_dollars()?.saturating_sub(self.cost.saturating_add(self.reserved_cost)))
    }

    /// Returns the limits that a call's size counts against.
    fn meters(&self, limits: &BudgetLimits, price: Option<Price>) -> Vec<Meter> {
        let tokens = limits.tokens.map(|most| Meter {
            what: "tokens",
            left: most.saturating_sub(self.tokens.saturating_add(self.reserved_tokens)),
            rate: TOKEN,
            is_reserved: self.reserved_tokens > 0,
        });
        let cost = self.left_of_cost(limits).zip(price).map(|(left, rate)| Meter {
            what: "cost",
            left: left.saturating_mul(NANOS_OF_MICRO),
            rate,
            is_reserved: self.reserved_cost > 0,
        });
        tokens.into_iter().chain(cost).collect()
    }

    fn hold(&mut self, grant: ReservedAmounts) {
        self.calls += 1;
        self.under_way += 1;
        self.unpriced += usize::from(grant.is_unpriced);
        self.reserved_tokens = self.reserved_tokens.saturating_add(grant.tokens);
        self.reserved_cost = self.reserved_cost.saturating_add(grant.cost);
    }

    /// Adds the usage of a call. A call of unknown cost is charged like the most expensive one so far, and their number is
    /// limited.
    pub(super) fn settle(&mut self, tokens: u64, charge: Charge) {
        self.tokens = self.tokens.saturating_add(tokens);
        match charge {
            Charge::Known(cost) => {
                self.cost = self.cost.saturating_add(cost);
                self.dearest = self.dearest.max(cost);
            }
            Charge::Unknown { least } => {
                self.dearest = self.dearest.max(least);
                self.cost = self.cost.saturating_add(self.dearest);
                self.of_unknown_cost = self.of_unknown_cost.saturating_add(1);
            }
        }
    }

    /// Gives back what was reserved for a call that has ended.
    pub(super) fn release(&mut self, grant: ReservedAmounts) {
        self.under_way = self.under_way.saturating_sub(1);
        self.unpriced = self.unpriced.saturating_sub(usize::from(grant.is_unpriced));
        self.reserved_tokens = self.reserved_tokens.saturating_sub(grant.tokens);
        self.reserved_cost = self.reserved_cost.saturating_sub(grant.cost);
    }
}

/// Returns the output limit with which a call fits into all limits; `None` if it has to wait for others.
fn granted(
    meters: &[Meter],
    limits: &BudgetLimits,
    demand: &Demand,
    may_wait: bool,
) -> Result<Option<u64>, Refusal> {
    let mut output = demand.wanted_output(limits.output_tokens.unwrap_or(OUTPUT_TOKENS));
    for meter in meters {
        if demand.takes(output, meter.rate) <= meter.left {
            continue;
        }
        if may_wait && meter.is_reserved {
            return Ok(None);
        }
        output = match demand.affordable_output(meter.left, meter.rate) {
            Some(affordable) if affordable >= LEAST_OUTPUT => output.min(affordable),
            _ if meter.is_reserved => return Err(Refusal::BudgetReserved { what: meter.what }),
            _ => return Err(meter.too_small(demand.takes(output.min(LEAST_OUTPUT), meter.rate))),
        };
    }
    Ok(Some(output))
}

// === impl Meter ===

impl Meter {
    fn too_small(&self, least: u64) -> Refusal {
        match self.what {
            "tokens" => Refusal::BudgetTooSmall { left: self.left, least },
            _ => Refusal::CostTooSmall {
                left: self.left / NANOS_OF_MICRO,
                least: least.div_ceil(NANOS_OF_MICRO),
            },
        }
    }
}
