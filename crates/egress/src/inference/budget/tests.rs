//! What calls reserve and pay, alone and at once.

use super::*;
use crate::inference::models::ProviderKind;
use crate::inference::route::{Call, Route, find};
use belljar_contract::inference::UsageSource;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn usage(input_tokens: Option<u64>, cost: Option<&str>) -> (Option<ReportedUsage>, Usage) {
    let cost_usd = cost.map(|cost| Cost::parse(cost).unwrap());
    let reported = ReportedUsage { source: UsageSource::Body, input_tokens, output_tokens: None, cost_usd };
    (Some(reported), Usage { input_tokens, ..Usage::default() })
}

fn chat() -> Call {
    let Some(Route::Call(call)) = find("POST", "/v1/chat/completions") else { panic!("no such route") };
    call
}

fn demand(body: &str) -> Demand {
    Demand::read(body.as_bytes(), chat(), ProviderKind::LiteLlm).unwrap()
}

fn limits(tokens: u64) -> BudgetLimits {
    BudgetLimits { tokens: Some(tokens), ..BudgetLimits::default() }
}

/// A call's beginning; nothing while it waits for others.
fn try_begin<'b>(budget: &'b Budget, demand: &Demand) -> Option<Result<Reservation<'b>, Refusal>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let begun = pin!(budget.begin(demand));
    match begun.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(begun) => Some(begun),
        Poll::Pending => None,
    }
}

fn begin<'b>(budget: &'b Budget, body: &str) -> Result<Reservation<'b>, Refusal> {
    try_begin(budget, &demand(body)).expect("it need not wait")
}

/// A call that was made, of which so much is known.
fn call(budget: &Budget, known: (Option<u64>, Option<&str>), is_whole: bool) -> Result<(), Refusal> {
    let mut reservation = begin(budget, r#"{"max_tokens":10}"#)?;
    reservation.is_sent = true;
    let (reported, seen) = usage(known.0, known.1);
    reservation.spend(reported.as_ref(), &seen, Extent { is_whole, is_error: false, bytes: 100 });
    Ok(())
}

#[test]
fn used_up_budget_is_refused_by_its_name() {
    let budget = Budget::new(BudgetLimits { at_once: Some(1), ..limits(100) });
    let first = begin(&budget, "{}").unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::TooManyCalls { most: 1 });
    drop(first);
    call(&budget, (Some(60), Some("0.0000001")), true).unwrap();
    call(&budget, (Some(44), None), true).unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
    assert_eq!(budget.spent(), Spent { calls: 3, tokens: 104, cost: 0.000_001 });
    let calls = Budget::new(BudgetLimits { calls: Some(1), ..BudgetLimits::default() });
    drop(begin(&calls, "{}").unwrap());
    assert_eq!(begin(&calls, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "calls" });
}

#[test]
fn calls_at_once_never_reserve_more_than_is_left() {
    let budget = Budget::new(limits(1_000));
    let body = r#"{"max_tokens":283}"#;
    let mut under_way: Vec<_> = (0..3).map(|_| begin(&budget, body).unwrap()).collect();
    assert_eq!(under_way.iter().map(|call| call.tokens).sum::<u64>(), 903);
    // A fourth waits for one of them, and gets its whole limit then.
    let fourth = demand(body);
    assert!(try_begin(&budget, &fourth).is_none());
    under_way.pop();
    let fourth = try_begin(&budget, &fourth).unwrap().unwrap();
    assert_eq!(fourth.output, Some(283));
    drop((under_way, fourth));
    assert_eq!(budget.state().begin(&budget.limits, &demand("{}"), true).unwrap(), {
        Attempt::Begun { tokens: 1_000, cost: 0, output: Some(998) }
    });
}

#[test]
fn call_that_fits_nowhere_is_refused_and_one_that_asks_for_more_is_lowered() {
    let budget = Budget::new(limits(1_000));
    let many = r#"{"max_tokens":50000,"n":128}"#;
    let refused = begin(&budget, many).unwrap_err();
    let least = 128 * (many.len() as u64 + 16);
    assert_eq!(refused, Refusal::BudgetTooSmall { left: 1_000, least });
    assert_eq!(refused.code(), "budget_exceeded");
    let large = r#"{"max_tokens":50000,"n":2}"#;
    let lowered = begin(&budget, large).unwrap();
    assert_eq!((lowered.output, lowered.tokens), (Some(500 - large.len() as u64), 1_000));
}

#[test]
fn hanging_up_before_the_usage_is_reported_pays_all_that_was_reserved() {
    let tokens = Budget::new(limits(150));
    call(&tokens, (None, None), false).unwrap();
    call(&tokens, (Some(1), None), false).unwrap();
    assert_eq!(tokens.spent().tokens, 2 * (r#"{"max_tokens":10}"#.len() as u64 + 10));
    let cost = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
    call(&cost, (None, Some("0.4")), true).unwrap();
    call(&cost, (None, None), false).unwrap();
    call(&cost, (None, None), false).unwrap();
    assert_eq!(begin(&cost, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "cost" });
    let unknown = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
    let made = (0..100).take_while(|_| call(&unknown, (None, None), false).is_ok()).count();
    assert_eq!(made, 16);
    // The control: a call that is heard to its end pays what is reported.
    let whole = Budget::new(BudgetLimits { cost: Some(1.0), ..limits(1_000) });
    assert!((0..100).all(|_| call(&whole, (Some(1), Some("0.001")), true).is_ok()));
    assert_eq!(whole.spent(), Spent { calls: 100, tokens: 100, cost: 0.1 });
}

#[test]
fn call_that_is_cut_off_pays_what_has_come_where_that_is_more_than_was_reserved() {
    for is_whole in [false, true] {
        let budget = Budget::new(limits(1_000));
        let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
        reservation.is_sent = true;
        let seen = Usage { received_tokens: 700, ..Usage::default() };
        reservation.spend(None, &seen, Extent { is_whole, is_error: false, bytes: 90_000 });
        assert_eq!(budget.spent().tokens, 700, "the provider doesn't hold the limit");
    }
    // The control: one that holds it, of which less has come.
    let budget = Budget::new(limits(1_000));
    let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
    reservation.is_sent = true;
    let seen = Usage { received_tokens: 7, ..Usage::default() };
    reservation.spend(None, &seen, Extent { is_whole: false, is_error: false, bytes: 1_000 });
    assert_eq!(budget.spent().tokens, 27);
}

#[test]
fn provider_that_reports_no_usage_is_paid_by_bytes_and_one_that_refuses_is_not() {
    let budget = Budget::new(limits(1_000));
    call(&budget, (None, None), true).unwrap();
    assert_eq!(budget.spent().tokens, 27, "no more than was reserved");
    let mut refused = begin(&budget, "{}").unwrap();
    refused.is_sent = true;
    refused.spend(None, &Usage::default(), Extent { is_whole: true, is_error: true, bytes: 500 });
    drop(begin(&budget, "{}").unwrap());
    assert_eq!(budget.spent().tokens, 27);
}

#[test]
fn calls_of_unknown_or_scarce_cost_are_made_one_at_a_time() {
    let budget = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
    let first = begin(&budget, "{}").unwrap();
    assert!(try_begin(&budget, &demand("{}")).is_none(), "no call has told its price yet");
    drop(first);
    call(&budget, (None, Some("0.3")), true).unwrap();
    let under_way: Vec<_> = (0..2).map(|_| begin(&budget, "{}").unwrap()).collect();
    assert!(try_begin(&budget, &demand("{}")).is_none(), "0.1 is left beside those");
    drop(under_way);
    // The control: where a provider reports no cost, calls are made at once.
    let unpriced = Budget::new(BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() });
    call(&unpriced, (Some(5), None), true).unwrap();
    let under_way: Vec<_> = (0..9).map(|_| begin(&unpriced, "{}").unwrap()).collect();
    assert_eq!(under_way.len(), 9);
}

#[test]
fn no_number_that_is_reported_begins_anew_from_nothing() {
    let budget = Budget::new(limits(100));
    call(&budget, (Some(9), None), true).unwrap();
    call(&budget, (Some(u64::MAX), Some("99999999999999999999")), true).unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
}
