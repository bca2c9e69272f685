//! Usage reports: their source, their form, and exact sums of money.

use crate::records::call;
use belljar_contract::inference::{
    CallOutcome, CallRecord, Cost, CostTotal, Excerpt, ProviderKind, ReasonCode, Route,
};
use belljar_contract::usage::{UsageBasis, UsageReport};
use proptest::prelude::*;
use serde_json::{Value, json};

fn record() -> CallRecord {
    call(CallOutcome::Completed)
}

fn code() -> ReasonCode {
    ReasonCode::parse("provider_cut").unwrap()
}

#[test]
fn usage_report_snapshot_and_round_trip() {
    let report = UsageReport::of(&record()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
    let read: UsageReport = serde_json::from_value(serde_json::to_value(&report).unwrap()).unwrap();
    assert_eq!(read, report);
}

#[test]
fn inconsistent_usage_report_is_rejected() {
    let sound = serde_json::to_value(UsageReport::of(&record()).unwrap()).unwrap();
    assert!(serde_json::from_value::<UsageReport>(sound.clone()).is_ok());
    for (member, value) in [
        (
            "idempotency_key",
            json!("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f/1/0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"),
        ),
        ("attempt", json!(1)),
        ("basis", json!("provider_reported")),
        ("source", json!("openai")),
        ("is_degraded", json!(true)),
        ("cost_usd", Value::Null),
        ("cost_usd", json!(0.1)),
        ("cost_usd", json!("-0.1")),
        ("input_tokens", json!(-1)),
        ("executor_type", json!("external")),
        ("prompt", json!("x")),
    ] {
        let mut spoiled = sound.clone();
        spoiled[member] = value.clone();
        assert!(serde_json::from_value::<UsageReport>(spoiled).is_err(), "{member}: {value}");
    }
    for member in ["usage_unit_id", "billing_account_id", "idempotency_key", "basis"] {
        let mut spoiled = sound.clone();
        spoiled.as_object_mut().unwrap().remove(member);
        assert!(serde_json::from_value::<UsageReport>(spoiled).is_err(), "{member}");
    }
}

#[test]
fn answered_calls_have_a_usage_report_after_any_outcome() {
    for outcome in [CallOutcome::Completed, CallOutcome::Canceled, CallOutcome::Failed { code: code() }] {
        let report =
            UsageReport::of(&CallRecord { outcome: outcome.clone(), usage: None, ..record() }).unwrap();
        assert_eq!((report.outcome.clone(), report.cost_usd.clone()), (outcome, None));
        assert!(report.is_degraded(), "{report:?}");
    }
    let refused = CallRecord { upstream_status: Some(429), usage: None, ..record() };
    assert!(!UsageReport::of(&refused).unwrap().is_degraded());
    let none = [
        CallRecord { outcome: CallOutcome::Denied { reason: code() }, ..record() },
        CallRecord { upstream_status: None, outcome: CallOutcome::Failed { code: code() }, ..record() },
        CallRecord {
            provider: None,
            provider_kind: None,
            model_used: None,
            upstream_status: None,
            ..record()
        },
        CallRecord {
            route: Route { path: Excerpt::of("/v1/messages/count_tokens"), ..record().route },
            ..record()
        },
    ];
    for record in none {
        assert_eq!(UsageReport::of(&record), None, "{record:?}");
    }
}

#[test]
fn only_litellm_usage_is_based_on_spend_logs() {
    for (kind, basis, source) in [
        (ProviderKind::LiteLlm, UsageBasis::SpendLogs, "litellm"),
        (ProviderKind::OpenAi, UsageBasis::ProviderReported, "openai"),
        (ProviderKind::Anthropic, UsageBasis::ProviderReported, "anthropic"),
        (ProviderKind::Ollama, UsageBasis::ProviderReported, "ollama"),
    ] {
        let report = UsageReport::of(&CallRecord { provider_kind: Some(kind), ..record() }).unwrap();
        assert_eq!(report.basis(), basis);
        assert_eq!(serde_json::to_value(&report).unwrap()["source"], source);
        assert_eq!(kind.to_string(), source);
    }
}

#[test]
fn cost_sums_are_exact_without_redundant_digits() {
    let sum = |costs: &[&str]| {
        let costs: Vec<Cost> = costs.iter().map(|cost| Cost::parse(cost).unwrap()).collect();
        costs.iter().collect::<CostTotal>().to_string()
    };
    assert_eq!(sum(&[]), "0");
    assert_eq!(sum(&["0.0", "0", "0e5"]), "0");
    assert_eq!(sum(&["0.1", "0.2"]), "0.3");
    assert_eq!(sum(&["1.25e-05", "3E-7", "2"]), "2.0000128");
    assert_eq!(sum(&["9.99", "0.01"]), "10");
    assert_eq!(sum(&["1e3", "1e-20"]), "1000.00000000000000000001");
    assert_eq!(sum(&["1.3500000000000001e-05"; 3]), "0.000040500000000000003");
    let largest = sum(&["1e308", "1e-308"]);
    assert!(largest.starts_with("1000") && largest.ends_with("0001") && largest.len() == 309 + 1 + 308);
    for endless in ["1e-401", "1e-999999999999", "0.1e-400"] {
        assert!(Cost::parse(endless).is_err(), "{endless}");
    }
}

proptest! {
    /// Compared with integers, which need no rounding.
    #[test]
    fn cost_sum_is_independent_of_order_and_notation(amounts: Vec<(u32, u8)>) {
        let places = |places: u8| u32::from(places % 12);
        let exact: u128 = amounts.iter().map(|(units, p)| u128::from(*units) * 10_u128.pow(12 - places(*p))).sum();
        let costs: Vec<Cost> = amounts.iter().map(|(units, p)| match units % 2 {
            0 => Cost::parse(&format!("{units}e-{}", places(*p))).unwrap(),
            _ => {
                let (places, scale) = (places(*p) as usize, 10_u64.pow(places(*p)));
                let (whole, rest) = (u64::from(*units) / scale, u64::from(*units) % scale);
                Cost::parse(&format!("{whole}.{rest:0places$}")).unwrap()
            }
        }).collect();
        let forward: CostTotal = costs.iter().collect();
        let backward: CostTotal = costs.iter().rev().collect();
        prop_assert_eq!(&forward, &backward);
        let whole = format!("{}.{:012}", exact / 10_u128.pow(12), exact % 10_u128.pow(12));
        let expected = whole.trim_end_matches('0').trim_end_matches('.');
        prop_assert_eq!(forward.to_string(), expected);
    }

    #[test]
    fn cost_converts_to_the_nearest_float(float in 0.0_f64..1e9) {
        let cost = Cost::parse(&format!("{float:e}")).unwrap();
        prop_assert_eq!(cost.to_total().to_f64(), float);
        prop_assert_eq!(cost.to_total(), Cost::parse(&format!("{float}")).unwrap_or(cost).to_total());
    }
}
