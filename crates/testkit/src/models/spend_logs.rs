//! A simulation of LiteLLM's spend logs: a model server that also records the cost of calls, and returns it at `GET
//! /spend/logs`.
//!
//! The real one keeps them in PostgreSQL through an engine that is downloaded at installation, which needs a network.
//! So this simulates its documented contract, and its source's behaviour (1.106.2): callers without the key are
//! refused; rows are the latest of the requested days, up to the first moment of the last day, limited in number, with
//! a header if there are more; without `summarize=false` days are sums. `end_user` is ignored there.

use super::{Answer, Request, Script, Usage, locked};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The books.
#[derive(Debug, Clone)]
pub struct SpendLogs {
    rows: Arc<Mutex<Vec<Value>>>,
    key: String,
    most_rows: usize,
}

/// Cost of each call.
pub const DOLLARS: f64 = 0.000_013_5;

/// Tokens of each call.
pub const TOKENS: Usage = Usage { input: 12, output: 7 };

// === impl SpendLogs ===

impl SpendLogs {
    /// Creates empty logs, for clients with this key.
    pub fn new(key: &str) -> Self {
        Self { rows: Arc::default(), key: key.to_owned(), most_rows: 10_000 }
    }

    /// Limits the number of rows in one answer.
    #[must_use]
    pub fn giving_at_most(self, rows: usize) -> Self {
        Self { most_rows: rows, ..self }
    }

    /// Returns a script that answers every call with the same text, records it, and returns the records.
    pub fn script(&self, text: &str) -> Script {
        let (logs, answer) = (self.clone(), Answer::text(text).with_usage(TOKENS).with_cost(DOLLARS));
        Script::from_fn(move |request| {
            if request.path() == "/spend/logs" && request.method == "GET" {
                return Some(logs.show(request));
            }
            request.operation().generates().then(|| {
                locked(&logs.rows).push(row_of(request));
                answer.clone()
            })
        })
    }

    /// Changes the recorded rows, as LiteLLM returns them.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Value>)) {
        change(&mut locked(&self.rows));
    }

    fn show(&self, request: &Request) -> Answer {
        if request.header("authorization") != Some(&format!("Bearer {}", self.key)) {
            return answered(
                401,
                &[],
                &error("Authentication Error, Invalid proxy server token passed.", "401"),
            );
        }
        let asked = |name: &str| query(&request.target, name);
        let days = match (asked("start_date"), asked("end_date")) {
            (Some(begin), Some(end)) => match (midnight(&begin), midnight(&end)) {
                (Some(begin), Some(end)) => Some((begin, end)),
                _ => {
                    return answered(
                        500,
                        &[],
                        &error("/spend/logs Errortime data does not match format", "500"),
                    );
                }
            },
            _ => None,
        };
        let is_of_days = |row: &&Value| {
            let time: Option<Timestamp> = row["startTime"].as_str().and_then(|time| time.parse().ok());
            days.is_none_or(|(begin, end)| time.is_some_and(|time| begin <= time && time <= end))
        };
        // The latest first.
        let rows: Vec<Value> = locked(&self.rows).iter().rev().filter(is_of_days).cloned().collect();
        if days.is_some() && asked("summarize").as_deref() != Some("false") {
            let spend: f64 = rows.iter().filter_map(|row| row["spend"].as_f64()).sum();
            let day = asked("start_date");
            return answered(
                200,
                &[],
                &json!([{"startTime": day, "spend": spend, "users": {}, "models": {}}]),
            );
        }
        let has_more = rows.len() >= self.most_rows;
        let headers: &[_] = if has_more { &[("x-litellm-spend-logs-truncated", "true")] } else { &[] };
        let rows: Vec<Value> = rows.into_iter().take(self.most_rows).collect();
        answered(200, headers, &Value::Array(rows))
    }
}

/// Answer of LiteLLM without a database.
pub fn without_database() -> Answer {
    let why = "/spend/logs ErrorDatabase not connected. Connect a database to your proxy - \
               https://docs.litellm.ai/docs/simple_proxy#managing-auth---virtual-keys";
    answered(500, &[], &error(why, "500"))
}

/// A row of the table `LiteLLM_SpendLogs`.
fn row_of(request: &Request) -> Value {
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let call_id = header("x-litellm-call-id");
    let metadata: Value = serde_json::from_str(&header("x-litellm-spend-logs-metadata")).unwrap_or_default();
    let now = format!("{:.3}", Timestamp::now());
    let sent = request.json();
    json!({
        // The id of the answer, which its provider has chosen.
        "request_id": format!("chatcmpl-{}", uuid::Uuid::new_v4()),
        "call_type": "acompletion", "api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
        "spend": DOLLARS, "total_tokens": TOKENS.input + TOKENS.output,
        "prompt_tokens": TOKENS.input, "completion_tokens": TOKENS.output,
        "startTime": now, "endTime": now, "completionStartTime": null,
        "model": sent["model"], "model_group": sent["model"], "custom_llm_provider": "openai",
        "api_base": "", "user": "default_user_id", "cache_hit": "False", "cache_key": "Cache OFF",
        "request_tags": ["User-Agent: test"], "team_id": null, "end_user": header("x-litellm-end-user-id"),
        "requester_ip_address": "127.0.0.1", "messages": {}, "response": {}, "session_id": call_id,
        "status": "success", "litellm_call_id": call_id,
        "metadata": {
            "status": "success", "litellm_call_id": call_id, "spend_logs_metadata": metadata,
            "additional_usage_values": {}, "user_api_key_alias": null,
        },
    })
}

fn answered(status: u16, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers = [&[("content-type", "application/json")], headers].concat();
    Answer::own(status, &headers, body.to_string())
}

fn error(message: &str, code: &str) -> Value {
    json!({"error": {"message": message, "type": "internal_error", "param": "None", "code": code}})
}

fn query(target: &str, name: &str) -> Option<String> {
    let (_, query) = target.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}

fn midnight(day: &str) -> Option<Timestamp> {
    day.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}
