//! Rows of LiteLLM's spend logs: the members that bills are compared by are read strictly, all others are ignored.

use belljar_contract::spend::{SpendRow, SpendRowsError};
use serde_json::{Value, json};

const CALL: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
const RUN: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

fn row() -> Value {
    json!({
        "request_id": "chatcmpl-1", "litellm_call_id": CALL, "call_type": "acompletion", "spend": 0.000_013_5,
        "prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19, "model": "gpt-4o-mini",
        "startTime": "2026-01-02T03:04:05.123Z", "endTime": "2026-01-02T03:04:06Z", "end_user": "account-7",
        "metadata": {"status": "success", "spend_logs_metadata": {"run_id": RUN, "attempt": 0, "graph_id": "a:b"}},
        "status": "success", "messages": {}, "response": {}, "some_day": [{"new": null}],
    })
}

fn read(row: &Value) -> Result<SpendRow, SpendRowsError> {
    SpendRow::parse_all(json!([row]).to_string().as_bytes()).map(|mut rows| rows.remove(0))
}

fn with(change: impl FnOnce(&mut Value)) -> Result<SpendRow, SpendRowsError> {
    let mut changed = row();
    change(&mut changed);
    read(&changed)
}

#[test]
fn spend_row_parses_the_members_needed_for_billing() {
    let read = read(&row()).unwrap();
    assert_eq!(read.call_id.as_ref().unwrap().as_str(), CALL);
    assert_eq!((read.run_id.as_ref().unwrap().as_str(), read.attempt), (RUN, Some(0)));
    assert_eq!((read.cost_usd.as_str(), read.input_tokens, read.output_tokens), ("0.0000135", 12, 7));
    assert_eq!(read.end_user.unwrap().as_str(), "account-7");
    assert_eq!(read.started_at.to_string(), "2026-01-02T03:04:05.123Z");
    assert!(!read.is_failure);
    assert_eq!(SpendRow::parse_all(b" [] ").unwrap(), []);
}

#[test]
fn spend_row_cost_keeps_its_exact_digits() {
    let text = json!([row()]).to_string().replace("0.0000135", "0.00001350000000000000000001");
    assert_eq!(
        SpendRow::parse_all(text.as_bytes()).unwrap()[0].cost_usd.as_str(),
        "0.00001350000000000000000001"
    );
}

#[test]
fn spend_row_metadata_is_found_in_all_litellm_versions() {
    let theirs = json!({"run_id": RUN, "attempt": 0});
    for metadata in [
        json!({"spend_logs_metadata": theirs}),
        json!({"spend_logs_metadata": theirs.to_string()}),
        json!(json!({"spend_logs_metadata": theirs}).to_string()),
        theirs.clone(),
    ] {
        let read = with(|row| row["metadata"] = metadata.clone()).unwrap();
        assert_eq!(
            (read.run_id.map(|id| id.to_string()), read.attempt),
            (Some(RUN.to_owned()), Some(0)),
            "{metadata}"
        );
    }
    for (member, at) in [("litellm_call_id", CALL), ("litellm_call_id", "")] {
        let read = with(|row| {
            row[member] = json!(at);
            row["request_id"] = json!(CALL);
        });
        assert_eq!(read.unwrap().call_id.unwrap().as_str(), CALL);
    }
    let below = with(|row| {
        row.as_object_mut().unwrap().remove("litellm_call_id");
        row["metadata"]["litellm_call_id"] = json!(CALL);
    });
    assert_eq!(below.unwrap().call_id.unwrap().as_str(), CALL);
    // A foreign call is not ours just because its response's id looks like one.
    let other = with(|row| {
        row["litellm_call_id"] = json!("other");
        row["request_id"] = json!(CALL);
    });
    assert_eq!(other.unwrap().call_id, None);
}

#[test]
fn spend_row_without_ids_is_foreign_and_is_parsed() {
    let read = with(|row| {
        for member in ["litellm_call_id", "end_user", "metadata", "model", "status"] {
            row[member] = Value::Null;
        }
        row["startTime"] = json!("2026-01-02T03:04:05.123");
    })
    .unwrap();
    assert_eq!((read.call_id, read.run_id, read.end_user), (None, None, None));
    assert_eq!(read.started_at.to_string(), "2026-01-02T03:04:05.123Z");
}

#[test]
fn invalid_spend_row_is_rejected_with_its_index() {
    for (member, value) in [
        ("spend", json!(-0.1)),
        ("spend", json!("0.1")),
        ("spend", Value::Null),
        ("prompt_tokens", json!(-1)),
        ("prompt_tokens", json!(1.5)),
        ("completion_tokens", Value::Null),
        ("request_id", Value::Null),
        ("startTime", json!("yesterday")),
        ("metadata", json!([])),
        ("metadata", json!("{")),
        ("end_user", json!(7)),
    ] {
        let error = with(|row| row[member] = value.clone()).unwrap_err();
        assert!(error.to_string().starts_with("row 0 of the spend logs"), "{member} {value}: {error}");
    }
    // LiteLLM's answer for a query by day without `summarize=false`.
    let sums = json!([{"startTime": "2026-01-02", "spend": 0.1, "users": {}, "models": {}}]).to_string();
    assert!(matches!(SpendRow::parse_all(sums.as_bytes()), Err(SpendRowsError::Row { at: 0, .. })));
    for none in ["", "{}", "null", "[1]", r#"{"error": "x"}"#, "[{}", "[{}]x"] {
        assert!(SpendRow::parse_all(none.as_bytes()).is_err(), "{none}");
    }
}
