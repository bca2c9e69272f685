//! Tests of what calls reserve and are charged, alone and concurrently.

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
    (
        Some(reported),
        Usage { input_tokens, output_tokens: Some(0), is_ended: true, is_final: true, ..Usage::default() },
    )
}

fn chat() -> Call {
    let Some(Route::Call(call)) = find("POST", "/v1/chat/completions") else { panic!("no such route") };
    call
}

fn demand(body: &str) -> Demand {
    Demand::read(body.as_bytes(), (chat(), ProviderKind::LiteLlm), FILE_TOKENS).unwrap()
}

fn limits(tokens: u64) -> BudgetLimits {
    BudgetLimits { tokens: Some(tokens), ..BudgetLimits::default() }
}

/// Begins a call; `None` while it waits for others.
fn try_begin<'b>(budget: &'b Budget, demand: &Demand) -> Option<Result<Reservation<'b>, Refusal>> {
    try_begin_at(budget, demand, None)
}

fn try_begin_at<'b>(
    budget: &'b Budget,
    demand: &Demand,
    price: Option<Price>,
) -> Option<Result<Reservation<'b>, Refusal>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    let begun = pin!(budget.begin(demand, price));
    match begun.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(begun) => Some(begun),
        Poll::Pending => None,
    }
}

fn begin<'b>(budget: &'b Budget, body: &str) -> Result<Reservation<'b>, Refusal> {
    try_begin(budget, &demand(body)).expect("it need not wait")
}

/// Makes a call with the given reported usage.
fn call(budget: &Budget, known: (Option<u64>, Option<&str>), is_whole: bool) -> Result<(), Refusal> {
    let mut reservation = begin(budget, r#"{"max_tokens":10}"#)?;
    reservation.is_sent = true;
    let (reported, seen) = usage(known.0, known.1);
    reservation.spend(reported.as_ref(), &seen, CallProgress { is_whole, is_error: false, bytes: 100 });
    Ok(())
}

#[test]
fn refusal_names_the_exhausted_budget() {
    let budget = Budget::new(BudgetLimits { at_once: Some(1), ..limits(100) });
    let first = begin(&budget, "{}").unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::TooManyCalls { most: 1 });
    drop(first);
    call(&budget, (Some(60), Some("0.0000001")), true).unwrap();
    call(&budget, (Some(44), None), true).unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
    assert_eq!(budget.spent(), BudgetUsage { calls: 3, tokens: 104, cost: 0.000_001 });
    let calls = Budget::new(BudgetLimits { calls: Some(1), ..BudgetLimits::default() });
    drop(begin(&calls, "{}").unwrap());
    assert_eq!(begin(&calls, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "calls" });
}

#[test]
fn concurrent_calls_never_reserve_more_than_is_left() {
    let budget = Budget::new(limits(1_000));
    let body = r#"{"max_tokens":283}"#;
    let mut under_way: Vec<_> = (0..3).map(|_| begin(&budget, body).unwrap()).collect();
    assert_eq!(under_way.iter().map(|call| call.grant.tokens).sum::<u64>(), 903);
    // A fourth call waits for one of them, and then gets its whole limit.
    let fourth = demand(body);
    assert!(try_begin(&budget, &fourth).is_none());
    under_way.pop();
    let fourth = try_begin(&budget, &fourth).unwrap().unwrap();
    assert_eq!(fourth.output(), Some(283));
    drop((under_way, fourth));
    let whole = try_begin(&budget, &demand("{}")).unwrap().unwrap();
    assert_eq!((whole.grant.tokens, whole.output()), (1_000, Some(998)));
}

#[test]
fn call_beyond_the_budget_is_refused_and_a_too_large_output_limit_is_lowered() {
    let budget = Budget::new(limits(1_000));
    let many = r#"{"max_tokens":50000,"n":128}"#;
    let refused = begin(&budget, many).unwrap_err();
    let least = 128 * (many.len() as u64 + 16);
    assert_eq!(refused, Refusal::BudgetTooSmall { left: 1_000, least });
    assert_eq!(refused.code(), "budget_exceeded");
    let large = r#"{"max_tokens":50000,"n":2}"#;
    let lowered = begin(&budget, large).unwrap();
    assert_eq!((lowered.output(), lowered.grant.tokens), (Some(500 - large.len() as u64), 1_000));
}

#[test]
fn call_aborted_before_its_usage_report_is_charged_the_whole_reservation() {
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
    // Control: a call that is received to its end is charged what is reported.
    let whole = Budget::new(BudgetLimits { cost: Some(1.0), ..limits(1_000) });
    assert!((0..100).all(|_| call(&whole, (Some(1), Some("0.001")), true).is_ok()));
    assert_eq!(whole.spent(), BudgetUsage { calls: 100, tokens: 100, cost: 0.1 });
}

#[test]
fn call_is_charged_received_tokens_if_they_exceed_the_reservation() {
    for is_whole in [false, true] {
        let budget = Budget::new(limits(1_000));
        let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
        reservation.is_sent = true;
        let seen = Usage { received_tokens: 700, ..Usage::default() };
        reservation.spend(None, &seen, CallProgress { is_whole, is_error: false, bytes: 90_000 });
        assert_eq!(budget.spent().tokens, 700, "the provider doesn't hold the limit");
    }
    // Control: a provider that obeys the limit; fewer tokens have come.
    let budget = Budget::new(limits(1_000));
    let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
    reservation.is_sent = true;
    let seen = Usage { received_tokens: 7, ..Usage::default() };
    reservation.spend(None, &seen, CallProgress { is_whole: false, is_error: false, bytes: 1_000 });
    assert_eq!(budget.spent().tokens, 27);
}

#[test]
fn early_usage_report_never_charges_less_than_the_received_tokens() {
    let early =
        Usage { input_tokens: Some(5), output_tokens: Some(1), received_tokens: 700, ..Usage::default() };
    let without_output = Usage { output_tokens: None, is_ended: true, is_final: true, ..early.clone() };
    let outdated = Usage { is_ended: true, ..early.clone() };
    for (seen, tokens) in [(&early, 700), (&without_output, 700), (&outdated, 700)] {
        let budget = Budget::new(limits(1_000));
        let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
        reservation.is_sent = true;
        reservation.spend(None, seen, CallProgress { is_whole: true, is_error: false, bytes: 90_000 });
        assert_eq!(budget.spent().tokens, tokens, "{seen:?}");
        let price = Price { input: 1_000, output: 10_000 };
        let budget = of_cost(1.0);
        let reported = usage(None, Some("0.000001")).0;
        begin_at(&budget, r#"{"max_tokens":10}"#, price).unwrap().spend(reported.as_ref(), seen, WHOLE);
        let is_final = seen.is_final;
        assert!(budget.spent().cost >= 0.007 || is_final, "{seen:?}: {:?}", budget.spent());
        // Without a price an early cost is a lower bound, and the call counts as one of unknown cost.
        let budget = of_cost(1.0);
        let made = (0..100).take_while(|_| {
            let Ok(mut call) = begin(&budget, "{}") else { return false };
            call.is_sent = true;
            call.spend(reported.as_ref(), seen, WHOLE);
            true
        });
        assert_eq!(made.count(), if is_final { 100 } else { 16 }, "{seen:?}");
    }
    // Control: a final report of all tokens counts, however much has come.
    let budget = Budget::new(limits(1_000));
    let seen = Usage { is_ended: true, is_final: true, ..early };
    let mut reservation = begin(&budget, r#"{"max_tokens":10}"#).unwrap();
    reservation.is_sent = true;
    reservation.spend(None, &seen, CallProgress { is_whole: true, is_error: false, bytes: 90_000 });
    assert_eq!(budget.spent().tokens, 6);
}

#[test]
fn call_without_usage_report_is_charged_by_bytes_and_an_error_is_free() {
    let budget = Budget::new(limits(1_000));
    call(&budget, (None, None), true).unwrap();
    assert_eq!(budget.spent().tokens, 27, "no more than was reserved");
    let mut refused = begin(&budget, "{}").unwrap();
    refused.is_sent = true;
    refused.spend(None, &Usage::default(), CallProgress { is_whole: true, is_error: true, bytes: 500 });
    drop(begin(&budget, "{}").unwrap());
    assert_eq!(budget.spent().tokens, 27);
}

/// Begins a call of a model with a stated price, and marks it as sent.
fn begin_at<'b>(budget: &'b Budget, body: &str, price: Price) -> Result<Reservation<'b>, Refusal> {
    let mut call = try_begin_at(budget, &demand(body), Some(price)).expect("it need not wait")?;
    call.is_sent = true;
    Ok(call)
}

const WHOLE: CallProgress = CallProgress { is_whole: true, is_error: false, bytes: 100 };
const CUT: CallProgress = CallProgress { is_whole: false, ..WHOLE };

fn of_cost(dollars: f64) -> Budget {
    Budget::new(BudgetLimits { cost: Some(dollars), ..BudgetLimits::default() })
}

#[test]
fn calls_without_a_stated_price_are_serialized_under_a_cost_limit() {
    // The cost of the next call can't be concluded from a cheap one, nor from one without a reported cost.
    for known in [None, Some("0.0001")] {
        let budget = of_cost(1.0);
        call(&budget, (Some(5), known), true).unwrap();
        let first = begin(&budget, "{}").unwrap();
        assert!(try_begin(&budget, &demand("{}")).is_none(), "one is under way");
        drop(first);
        begin(&budget, "{}").unwrap();
    }
    // Controls: no limit on cost, and a stated price.
    let unlimited = Budget::new(BudgetLimits::default());
    let under_way: Vec<_> = (0..9).map(|_| begin(&unlimited, "{}").unwrap()).collect();
    assert_eq!(under_way.len(), 9);
    let priced = of_cost(1.0);
    let price = Price { input: 150, output: 600 };
    let under_way: Vec<_> =
        (0..9).map(|_| begin_at(&priced, r#"{"max_tokens":100}"#, price).unwrap()).collect();
    assert_eq!(under_way.len(), 9);
}

#[test]
fn number_of_calls_without_reported_cost_is_limited() {
    for is_whole in [true, false] {
        let budget = of_cost(1.0);
        call(&budget, (Some(5), Some("0.000001")), true).unwrap();
        let made = (0..100).take_while(|_| call(&budget, (Some(5), None), is_whole).is_ok()).count();
        assert_eq!(made, 16, "{is_whole}");
        let refused = begin(&budget, "{}").unwrap_err();
        assert_eq!((refused.code(), refused.status()), ("cost_unknown", 403));
        // Calls of a model with a stated price go on.
        begin_at(&budget, "{}", Price { input: 1, output: 1 }).unwrap();
    }
    // Controls: calls that report their cost, and calls where cost isn't limited.
    let reported = of_cost(1.0);
    assert!((0..100).all(|_| call(&reported, (Some(5), Some("0.000001")), true).is_ok()));
    let unlimited = Budget::new(BudgetLimits::default());
    assert!((0..100).all(|_| call(&unlimited, (Some(5), None), true).is_ok()));
}

#[test]
fn call_with_a_stated_price_reserves_its_maximum_cost() {
    // One dollar for a million input tokens, ten for a million output tokens.
    let price = Price { input: 1_000, output: 10_000 };
    let budget = of_cost(0.01);
    let body = r#"{"max_tokens":280}"#;
    // 18 bytes and 280 tokens of output: 0.002818 dollars.
    let mut under_way: Vec<_> = (0..3).map(|_| begin_at(&budget, body, price).unwrap()).collect();
    assert_eq!(under_way[0].grant.cost, 2_818);
    assert!(try_begin_at(&budget, &demand(body), Some(price)).is_none(), "it would exceed the limit");
    // A call that is received to its end is charged its tokens. One that is cut off or reports nothing is charged all that was
    // reserved.
    let usage = Usage {
        input_tokens: Some(10),
        output_tokens: Some(5),
        is_ended: true,
        is_final: true,
        ..Usage::default()
    };
    under_way.pop().unwrap().spend(None, &usage, WHOLE);
    under_way.pop().unwrap().spend(None, &usage, CUT);
    under_way.pop().unwrap().spend(None, &Usage::default(), WHOLE);
    assert_eq!(budget.spent().cost, 0.005_696);
    // The next call's output is lowered to what is left; a call that is too large is refused.
    let lowered = begin_at(&budget, r#"{"max_tokens":9000}"#, price).unwrap();
    assert_eq!((lowered.grant.cost, lowered.output()), (4_299, Some(428)));
    drop(lowered);
    let refused = begin_at(&budget, r#"{"max_tokens":9000,"n":100}"#, price).unwrap_err();
    assert_eq!(refused.code(), "budget_exceeded");
    assert!(refused.to_string().starts_with("$0.004304 is left"), "{refused}");
    // A cost that the provider reports counts, whatever the stated price.
    begin_at(&budget, body, price).unwrap().spend(
        self::usage(Some(1), Some("0.001")).0.as_ref(),
        &usage,
        WHOLE,
    );
    assert_eq!(budget.spent().cost, 0.006_696);
}

#[test]
fn free_model_reserves_nothing_and_does_not_price_other_models() {
    let budget = of_cost(1.0);
    let free: Vec<_> = (0..20).map(|_| begin_at(&budget, "{}", Price::FREE).unwrap()).collect();
    assert!(free.iter().all(|call| call.output().is_none() && call.grant.cost == 0));
    free.into_iter().for_each(|call| call.spend(None, &Usage::default(), WHOLE));
    let first = begin(&budget, "{}").unwrap();
    assert!(try_begin(&budget, &demand("{}")).is_none(), "the other model's price is unknown");
    drop(first);
    assert_eq!(budget.spent().cost, 0.0);
}

#[test]
fn huge_reported_usage_does_not_overflow_the_counters() {
    let budget = Budget::new(limits(100));
    call(&budget, (Some(9), None), true).unwrap();
    call(&budget, (Some(u64::MAX), Some("99999999999999999999")), true).unwrap();
    assert_eq!(begin(&budget, "{}").unwrap_err(), Refusal::BudgetExceeded { what: "tokens" });
}
