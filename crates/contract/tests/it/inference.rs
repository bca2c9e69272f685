//! The record of a call: it is read back unchanged, and rejects unknown members.

use crate::records::call;
use belljar_contract::inference::{CallOutcome, CallRecord, Cost, Excerpt, ReasonCode};
use serde_json::{Value, json};

#[test]
fn call_record_round_trips() {
    let code = ReasonCode::parse("model_not_allowed").unwrap();
    let outcomes = [
        (CallOutcome::Completed, json!("completed")),
        (
            CallOutcome::Denied { reason: code.clone() },
            json!({ "denied": { "reason": "model_not_allowed" } }),
        ),
        (CallOutcome::Failed { code }, json!({ "failed": { "code": "model_not_allowed" } })),
        (CallOutcome::Canceled, json!("canceled")),
    ];
    for (outcome, written) in outcomes {
        let record = call(outcome);
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!(value["outcome"], written);
        assert_eq!((&value["surface"], &value["usage"]["cost_usd"]), (&json!("openai"), &json!("1.25e-05")));
        assert_eq!(serde_json::from_value::<CallRecord>(value).unwrap(), record);
    }
}

#[test]
fn call_record_rejects_unknown_members_at_any_depth() {
    let denied = CallOutcome::Denied { reason: ReasonCode::parse("budget_exceeded").unwrap() };
    let sound = serde_json::to_value(call(denied)).unwrap();
    for path in ["", "/route", "/usage", "/outcome", "/outcome/denied"] {
        let mut spoiled = sound.clone();
        spoiled.pointer_mut(path).unwrap()["prompt"] = json!("x");
        assert!(serde_json::from_value::<CallRecord>(spoiled).is_err(), "{path}");
    }
    let mut spoiled = sound.clone();
    spoiled["outcome"] = json!("succeeded");
    assert!(serde_json::from_value::<CallRecord>(spoiled).is_err());
    assert!(serde_json::from_value::<CallRecord>(sound).is_ok());
}

#[test]
fn excerpts_are_truncated_and_codes_and_costs_validated() {
    let long = "é".repeat(1_000);
    assert_eq!(Excerpt::of(&long).as_str().len(), Excerpt::LONGEST_BYTES);
    assert!(serde_json::from_value::<Excerpt>(Value::String(long)).is_err());
    for wrong in ["", "Denied", "a b", "a\n", &"a".repeat(65)] {
        assert!(ReasonCode::parse(wrong).is_err(), "{wrong:?}");
    }
    for right in ["0", "0.00012", "1e-7", "12.5"] {
        assert_eq!(Cost::parse(right).unwrap().as_str(), right);
    }
    for wrong in ["", "-1", "+1", "NaN", "inf", "1e999", ".5", "1 ", "0x1", "1_0"] {
        assert!(Cost::parse(wrong).is_err(), "{wrong:?}");
    }
}
