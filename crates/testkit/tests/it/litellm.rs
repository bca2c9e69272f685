//! LiteLLM's proxy answers, and its witness tells what it bills.

use crate::python;
use belljar_testkit::litellm::{FAILING_MODEL, LiteLlm, MASTER_KEY, MODEL};
use belljar_testkit::skip::skip;
use serde_json::json;

const SCRIPT: &str = r#"
import json, sys
import openai

url, key, call_id, model, stream = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
headers = {
    "x-litellm-call-id": call_id, "x-litellm-end-user-id": "account-1", "x-litellm-tags": "a,b",
    "x-litellm-spend-logs-metadata": json.dumps({"run_id": "r1", "attempt": 0}),
}
asked = {"model": model, "messages": [{"role": "user", "content": "hello"}], "extra_headers": headers}
seen = {}
try:
    if stream == "stream":
        with client.chat.completions.with_streaming_response.create(
            **asked, stream=True, stream_options={"include_usage": True},
        ) as raw:
            chunks = list(raw.parse())
            seen["text"] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            seen["cost"] = [chunk.usage.cost for chunk in chunks if chunk.usage][-1]
            seen["call_id"] = raw.headers["x-litellm-call-id"]
    else:
        raw = client.chat.completions.with_raw_response.create(**asked)
        seen["text"] = raw.parse().choices[0].message.content
        seen["cost"] = float(raw.headers["x-litellm-response-cost"])
        seen["call_id"] = raw.headers["x-litellm-call-id"]
except openai.APIStatusError as error:
    seen["status"] = error.status_code
print(json.dumps(seen))
"#;

fn litellm(test: &str) -> Option<LiteLlm> {
    LiteLlm::start().inspect_err(|why| skip(test, why)).ok()
}

#[test]
fn litellm_spend_logs_have_cost_call_id_and_metadata_of_a_call() {
    let test = "litellm_spend_logs_have_cost_call_id_and_metadata_of_a_call";
    let Some(litellm) = litellm(test) else { return };
    for how in ["whole", "stream"] {
        let call_id = uuid::Uuid::new_v4().to_string();
        let asked = python::run(SCRIPT, &[&litellm.url(), MASTER_KEY, &call_id, MODEL, how]);
        let seen = match asked {
            Ok(seen) => seen,
            Err(why) => return skip(test, &why),
        };
        assert_eq!((&seen["text"], &seen["call_id"]), (&json!("hello from mock"), &json!(call_id)), "{how}");
        let billed = litellm.billed_as(&call_id);
        let [billed] = billed.as_slice() else { panic!("{how}: {billed:?}") };
        assert!(billed.is_success && billed.cost > 0.0, "{billed:?}");
        assert_eq!(billed.model, MODEL);
        assert_eq!(billed.end_user, "account-1");
        assert_eq!(billed.spend_logs_metadata, json!({ "run_id": "r1", "attempt": 0 }));
        assert!(["a", "b"].iter().all(|tag| billed.tags.iter().any(|told| told == tag)), "{billed:?}");
        assert_eq!(billed.is_stream, how == "stream");
        let told = seen["cost"].as_f64().unwrap();
        assert!((told - billed.cost).abs() < 1e-12, "{how}: told {told}, billed {billed:?}");
    }
}

#[test]
fn litellm_spend_logs_have_failed_calls() {
    let test = "litellm_spend_logs_have_failed_calls";
    let Some(litellm) = litellm(test) else { return };
    let call_id = uuid::Uuid::new_v4().to_string();
    let asked = python::run(SCRIPT, &[&litellm.url(), MASTER_KEY, &call_id, FAILING_MODEL, "whole"]);
    let seen = match asked {
        Ok(seen) => seen,
        Err(why) => return skip(test, &why),
    };
    assert_eq!(seen, json!({ "status": 500 }));
    let billed = litellm.billed_as(&call_id);
    assert!(billed.iter().all(|billed| !billed.is_success && billed.cost == 0.0), "{billed:?}");
}

#[test]
fn litellm_refuses_another_key() {
    let test = "litellm_refuses_another_key";
    let Some(litellm) = litellm(test) else { return };
    let call_id = uuid::Uuid::new_v4().to_string();
    match python::run(SCRIPT, &[&litellm.url(), "sk-another", &call_id, MODEL, "whole"]) {
        Ok(seen) => assert!((400..500).contains(&seen["status"].as_u64().unwrap_or_default()), "{seen}"),
        Err(why) => skip(test, &why),
    }
}
