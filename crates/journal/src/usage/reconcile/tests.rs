//! Tests with matching spend logs, and with every kind of difference.

use super::*;
use crate::usage::example::{RUN, call, id};
use belljar_contract::inference::{CallOutcome, CallRecord, ReasonCode};
use proptest::prelude::*;

const OTHER_RUN: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d00";

fn row(number: u16) -> SpendRow {
    SpendRow {
        request_id: Excerpt::of(&format!("chatcmpl-{number}")),
        call_id: Some(id(number)),
        run_id: RunId::parse(RUN).ok(),
        attempt: Some(0),
        end_user: Some(Excerpt::of("account-7")),
        model: Excerpt::of("gpt-4o-mini"),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        cost_usd: Cost::parse("0.0000135").unwrap(),
        input_tokens: 12,
        cached_input_tokens: 0,
        output_tokens: 7,
        is_failure: false,
    }
}

fn compare(calls: &[CallRecord], rows: &[SpendRow]) -> Reconciliation {
    reconcile(&calls.iter().collect(), rows, Timestamp::MAX)
}

fn failed() -> CallOutcome {
    CallOutcome::Failed { code: ReasonCode::parse("provider_unreachable").unwrap() }
}

fn kinds(compared: &Reconciliation) -> Vec<String> {
    let kind = |one: &Difference| serde_json::to_value(one).unwrap()["kind"].as_str().unwrap().to_owned();
    compared.differences.iter().map(kind).collect()
}

#[test]
fn matching_spend_logs_agree_in_any_order_and_precision() {
    let compared = compare(&[call(1), call(2)], &[row(2), row(1)]);
    assert!(compared.agrees(), "{compared:?}");
    assert_eq!((compared.calls, compared.agreeing, compared.rows), (2, 2, 2));
    assert_eq!(
        (compared.reported_usd.to_string().as_str(), compared.logged_usd.to_string().as_str()),
        ("0.000027", "0.000027")
    );
    // Spend logs may have all digits of a float.
    let long = SpendRow { cost_usd: Cost::parse("0.000013500000000000000311").unwrap(), ..row(1) };
    assert!(compare(&[call(1)], &[long]).agrees());
}

#[test]
fn each_kind_of_difference_is_reported_once() {
    let stranger = RunId::parse(OTHER_RUN).ok();
    let unanswered = CallRecord { upstream_status: None, outcome: failed(), usage: None, ..call(1) };
    let denied = CallRecord {
        outcome: CallOutcome::Denied { reason: ReasonCode::parse("no").unwrap() },
        upstream_status: None,
        ..call(1)
    };
    let cases: Vec<(&str, Vec<CallRecord>, Vec<SpendRow>)> = vec![
        ("missing", vec![call(1)], vec![]),
        ("unknown", vec![call(1)], vec![row(1), row(2)]),
        ("unknown", vec![call(1)], vec![row(1), SpendRow { call_id: None, ..row(2) }]),
        ("unknown", vec![denied], vec![row(1)]),
        ("unreported", vec![unanswered], vec![row(1)]),
        ("cost", vec![call(1)], vec![SpendRow { cost_usd: Cost::parse("0.0000136").unwrap(), ..row(1) }]),
        ("cost", vec![CallRecord { usage: None, ..call(1) }], vec![row(1)]),
        ("tokens", vec![call(1)], vec![SpendRow { input_tokens: 13, ..row(1) }]),
        ("tokens", vec![call(1)], vec![SpendRow { output_tokens: 8, ..row(1) }]),
        ("end_user", vec![call(1)], vec![SpendRow { end_user: Some(Excerpt::of("account-8")), ..row(1) }]),
        ("end_user", vec![call(1)], vec![SpendRow { end_user: None, ..row(1) }]),
        ("run", vec![call(1)], vec![SpendRow { run_id: stranger, ..row(1) }]),
        ("run", vec![call(1)], vec![SpendRow { attempt: Some(1), ..row(1) }]),
    ];
    for (kind, calls, rows) in cases {
        let compared = compare(&calls, &rows);
        assert_eq!(kinds(&compared), [kind], "{compared:?}");
        assert!(!compared.agrees());
    }
    // A second row is a second charge: both differences are reported.
    let twice =
        compare(&[call(1)], &[row(1), SpendRow { request_id: Excerpt::of("chatcmpl-other"), ..row(1) }]);
    assert_eq!(kinds(&twice), ["duplicate", "cost"], "{twice:?}");
    assert_eq!(twice.logged_usd.to_string(), "0.000027");
}

#[test]
fn failed_retried_and_unpaid_calls_are_no_difference() {
    // A provider that rejects a call may write a row or none.
    let refused = CallRecord { upstream_status: Some(429), usage: None, ..call(1) };
    let in_vain = SpendRow {
        is_failure: true,
        cost_usd: Cost::parse("0.0").unwrap(),
        input_tokens: 0,
        output_tokens: 0,
        ..row(1)
    };
    assert!(compare(std::slice::from_ref(&refused), &[]).agrees());
    assert!(compare(&[refused], std::slice::from_ref(&in_vain)).agrees());
    // Two attempts, of which one is paid.
    let retried = SpendRow { request_id: Excerpt::of("first"), ..in_vain.clone() };
    assert!(compare(&[call(1)], &[retried, row(1)]).agrees());
    // No row is charged.
    let unanswered = CallRecord { upstream_status: None, outcome: failed(), usage: None, ..call(1) };
    assert!(compare(&[unanswered], &[in_vain]).agrees());
    // A free model, whose response has no cost.
    let free = SpendRow { cost_usd: Cost::parse("0").unwrap(), ..row(1) };
    let silent = CallRecord { usage: None, ..call(1) };
    assert!(compare(&[silent], &[free]).agrees());
    // Some responses leave out cached tokens.
    let cached = SpendRow { input_tokens: 1_012, cached_input_tokens: 1_000, ..row(1) };
    assert!(compare(&[call(1)], &[cached]).agrees());
    // Rows of another host's runs.
    let others = SpendRow { run_id: RunId::parse(OTHER_RUN).ok(), ..row(9) };
    let strangers = SpendRow { end_user: Some(Excerpt::of("account-8")), ..others.clone() };
    let compared = compare(&[call(1)], &[row(1), others, strangers]);
    assert!(compared.agrees() && (compared.rows, compared.other_rows) == (1, 1), "{compared:?}");
}

#[test]
fn missing_spend_row_is_awaited_until_the_given_time() {
    let ended_at = call(1).ended_at();
    let compared = |settled_until| reconcile(&[call(1)].iter().collect(), &[], settled_until);
    let early = compared(ended_at - std::time::Duration::from_millis(1));
    assert!(early.agrees() && early.agreeing == 0, "{early:?}");
    assert_eq!(early.awaited, [id(1)]);
    assert_eq!(kinds(&compared(ended_at)), ["missing"]);
}

#[test]
fn duplicate_records_count_once_and_denied_calls_never() {
    let denied =
        CallRecord { outcome: CallOutcome::Denied { reason: ReasonCode::parse("no").unwrap() }, ..call(2) };
    let calls: RecordedCalls = [call(1), call(1), denied].iter().collect();
    assert_eq!(calls.reports().len(), 1);
    assert_eq!(calls.totals().calls, 1);
    assert_eq!((calls.totals().input_tokens, calls.totals().output_tokens), (Some(12), Some(7)));
}

#[test]
fn reconciliation_has_the_documented_json_form() {
    let changed = SpendRow { cost_usd: Cost::parse("0.5").unwrap(), ..row(2) };
    let compared = compare(&[call(1), call(2), call(3)], &[row(1), changed, row(4)]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&compared).unwrap());
}

proptest! {
    /// Matching spend logs, altered in known ways: every difference is found, and no other.
    #[test]
    fn every_altered_spend_row_is_found_and_no_other(spoils in proptest::collection::vec(0_u8..7, 0..40), reversed: bool) {
        let (mut calls, mut rows, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for (number, spoil) in (0_u16..).zip(&spoils) {
            let row = row(number);
            let (recorded, rows_of_it, kinds): (bool, Vec<SpendRow>, &[&str]) = match spoil {
                0 => (true, vec![], &["missing"]),
                1 => (false, vec![row], &["unknown"]),
                2 => (true, vec![SpendRow { cost_usd: Cost::parse("7").unwrap(), ..row }], &["cost"]),
                3 => (true, vec![SpendRow { output_tokens: 1, ..row }], &["tokens"]),
                4 => (true, vec![SpendRow { end_user: None, ..row }], &["end_user"]),
                5 => (true, vec![row.clone(), row], &["duplicate", "cost"]),
                _ => (true, vec![row], &[]),
            };
            calls.extend(recorded.then(|| call(number)));
            rows.extend(rows_of_it);
            expected.extend(kinds.iter().map(|kind| (*kind).to_owned()));
        }
        // At least one call makes the run known.
        calls.push(call(999));
        rows.push(row(999));
        if reversed {
            rows.reverse();
        }
        let compared = compare(&calls, &rows);
        let mut found = kinds(&compared);
        found.sort();
        expected.sort();
        let right = spoils.iter().filter(|spoil| **spoil > 5).count() + 1;
        prop_assert_eq!(found, expected);
        prop_assert_eq!(compared.agreeing, right);
        prop_assert_eq!(compared.logged_usd, rows.iter().map(|row| &row.cost_usd).collect());
    }
}
