//! Tests of requests for LiteLLM's spend logs, and of all kinds of answers.

use crate::rig::KEY;
use belljar_egress::credential::{Credential, SecretSource};
use belljar_egress::inference::models::{Provider, ProviderKind};
use belljar_egress::spend::{Days, SpendError, ask};
use belljar_egress::upstream::Upstream;
use belljar_testkit::models::spend_logs::{SpendLogs, without_database};
use belljar_testkit::models::{Answer, ModelServer, Script};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use tempfile::TempDir;

fn provider(url: &str, key: &str) -> (Provider, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), key).unwrap();
    let provider = Provider {
        name: "house".to_owned(),
        kind: ProviderKind::LiteLlm,
        upstream: Upstream::parse(url).unwrap(),
        credential: Some(Arc::new(Credential::new(SecretSource::File(folder.path().join("key"))))),
    };
    (provider, folder)
}

fn row(id: &str, time: &str) -> Value {
    json!({"request_id": id, "spend": 0.25, "prompt_tokens": 1, "completion_tokens": 2, "startTime": time})
}

fn days(begin: &str, end: &str) -> Days {
    Days::between(begin.parse().unwrap(), end.parse().unwrap()).unwrap()
}

fn one_day() -> Days {
    days("2026-01-02T10:00:00Z", "2026-01-02T11:00:00Z")
}

/// Returns everything that an error prints, including its causes.
fn said(error: &SpendError) -> String {
    let mut said = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        said += &format!(" {error}");
        cause = error.source();
    }
    said
}

fn failing(script: Script) -> SpendError {
    let server = ModelServer::start(script);
    let (provider, _folder) = provider(&server.url(), KEY);
    ask(&provider, &["account-7"], one_day()).unwrap_err()
}

#[test]
fn spend_logs_are_requested_per_day_and_rows_are_not_duplicated() {
    let logs = SpendLogs::new(KEY);
    let server = ModelServer::start(logs.script("hello"));
    logs.change(|rows| {
        let times = [
            "2026-01-01T23:59:59.999Z",
            "2026-01-02T00:00:00Z",
            "2026-01-03T00:00:00Z",
            "2026-01-04T00:00:01Z",
        ];
        rows.extend(times.iter().map(|time| row(time, time)));
    });
    let (provider, _folder) = provider(&server.url(), KEY);
    let rows = ask(&provider, &["a b&c"], days("2026-01-02T10:00:00Z", "2026-01-03T10:00:00Z")).unwrap();
    let mut ids: Vec<&str> = rows.iter().map(|row| row.request_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]);
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    let target = |day: &str, next: &str| {
        format!("/spend/logs?end_user=a%20b%26c&start_date={day}&end_date={next}&summarize=false")
    };
    assert_eq!(asked, [target("2026-01-02", "2026-01-03"), target("2026-01-03", "2026-01-04")]);
    assert_eq!((server.connection_count(), server.flawed().len()), (1, 0));
}

#[test]
fn incomplete_spend_answers_are_errors() {
    let own = |status, body: &str| {
        let body = body.to_owned();
        Script::from_fn(move |_| Some(Answer::own(status, &[], body.clone())))
    };
    let raw = |text: &'static str| Script::from_fn(move |_| Some(Answer::raw(text)));
    assert!(matches!(failing(Script::from_fn(|_| Some(without_database()))), SpendError::NoDatabase { .. }));
    assert!(matches!(failing(own(500, "{}")), SpendError::Status { status: 500, .. }));
    assert!(matches!(failing(own(404, "{}")), SpendError::Status { status: 404, .. }));
    assert!(matches!(failing(own(307, "")), SpendError::Status { status: 307, .. }));
    assert!(matches!(failing(own(200, "<html>")), SpendError::Rows { .. }));
    assert!(matches!(failing(own(200, r#"[{"spend": 1}]"#)), SpendError::Rows { .. }));
    assert!(matches!(
        failing(raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]")),
        SpendError::Connection { .. }
    ));
    assert!(matches!(failing(raw("HTTP/1.1 200 OK\nContent-Length: 2\n\n[]")), SpendError::Malformed { .. }));
    assert!(matches!(
        failing(raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n[]")),
        SpendError::TooLarge { .. }
    ));
    assert!(matches!(failing(Script::from_fn(|_| Some(Answer::hang_up()))), SpendError::Connection { .. }));
    let logs = SpendLogs::new(KEY).giving_at_most(1);
    logs.change(|rows| rows.push(row("1", "2026-01-02T10:00:00Z")));
    assert!(matches!(failing(logs.script("hello")), SpendError::Truncated { .. }));
}

#[test]
fn spend_errors_never_contain_the_credential() {
    let another = SpendLogs::new("sk-another-4f9aB7zKd82QmX01");
    let refused = failing(another.script("hello"));
    assert!(matches!(refused, SpendError::Forbidden { status: 401, .. }));
    let echo = |status| Script::from_fn(move |_| Some(Answer::echo(status)));
    for error in [refused, failing(echo(500)), failing(echo(401)), failing(echo(200))] {
        assert!(!said(&error).contains(KEY), "{error:?}");
    }
    // In a row that an error message could repeat.
    let rows = json!([{"request_id": KEY, "spend": "x"}]).to_string();
    let error = failing(Script::from_fn(move |_| Some(Answer::own(200, &[], rows.clone()))));
    assert!(matches!(error, SpendError::Echo { .. }), "{error:?}");
    let (none, folder) = provider("http://127.0.0.1:9", KEY);
    std::fs::remove_file(folder.path().join("key")).unwrap();
    assert!(matches!(ask(&none, &["a"], one_day()), Err(SpendError::Credential { .. })));
}

#[test]
fn spend_is_available_only_for_litellm_and_a_limited_range() {
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let (mut provider, _folder) = provider(&server.url(), KEY);
    provider.kind = ProviderKind::OpenAi;
    assert!(matches!(ask(&provider, &["a"], one_day()), Err(SpendError::NotLiteLlm { .. })));
    assert_eq!(server.request_count(), 0);
    let begin: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    let day = SignedDuration::from_hours(24);
    assert!(Days::between(begin, begin + day * 365).is_ok());
    assert!(Days::between(begin, begin + day * 366).is_err());
    assert!(Days::between(begin, begin - day).is_ok(), "a clock that was set back");
}
