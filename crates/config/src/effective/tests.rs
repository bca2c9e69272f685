//! The effective configuration: sources, secrets, and that its text is a configuration.

use super::{EffectiveValue, Overrides, ShownValue, ValueSource, effective, lines};
use crate::Configuration;
use belljar_contract::yaml::{self, MistakeLog};
use serde_json::json;

fn of(document: Option<&str>, overrides: &Overrides) -> Vec<EffectiveValue> {
    let root = document.and_then(|text| yaml::parse(text.as_bytes(), &mut MistakeLog::default()));
    let configuration = document.map(|text| Configuration::parse(text.as_bytes()).unwrap());
    let sandboxing = configuration.map(|read| read.sandboxing.sandboxing).unwrap_or_default();
    effective(root.as_ref(), &sandboxing, overrides)
}

#[track_caller]
fn at<'v>(values: &'v [EffectiveValue], path: &str) -> &'v EffectiveValue {
    values.iter().find(|value| value.path == path).unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn value_has_the_source_that_takes_precedence() {
    let document = "node:\n  max_waiting: 7\n  max_concurrency: 3\n";
    let flags = [("--max-waiting", "9".to_owned())].into();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318".to_owned())].into();
    let values = of(Some(document), &Overrides { flags, variables });
    let is = |path: &str, value: serde_json::Value, source: ValueSource| {
        let found = at(&values, path);
        assert!(matches!(&found.value, ShownValue::Value { json, .. } if *json == value), "{found:?}");
        assert_eq!(found.source, source, "{path}");
    };
    is("node.max_waiting", json!(9), ValueSource::Flag("--max-waiting"));
    is("node.max_concurrency", json!(3), ValueSource::File { line: 3 });
    is("node.max_request_bytes", json!("10m"), ValueSource::Default);
    let endpoint = ValueSource::Variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    is("node.traces.endpoint", json!("http://127.0.0.1:4318"), endpoint);
}

#[test]
fn written_endpoint_takes_precedence_over_the_variable() {
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1".to_owned())].into();
    let document = "node: {traces: {endpoint: 'http://127.0.0.1:2'}}";
    let values = of(Some(document), &Overrides { variables, ..Overrides::default() });
    assert_eq!(at(&values, "node.traces.endpoint").source, ValueSource::File { line: 1 });
}

#[test]
fn secrets_are_left_out_with_their_source() {
    let document = "tools: {channels: {slack: [{name: a, url: 'https://hooks.example/s3cr3t'}]}}\n\
                    mcp:\n  servers: [{name: a, transport: stdio, command: x, args: [s3cr3t], env: {A: s3cr3t}}]\n\
                    node: {callback: {url: 'https://a.example/s3cr3t', secret_file: /a}}\n";
    let values = of(Some(document), &Overrides::default());
    for path in
        ["tools.channels.slack[0].url", "mcp.servers[0].args", "mcp.servers[0].env", "node.callback.url"]
    {
        assert_eq!(at(&values, path).value, ShownValue::Secret, "{path}");
    }
    let text = lines(&values, "f.yaml");
    assert!(!text.contains("s3cr3t"), "{text}");
    assert!(text.contains("# args: not shown (f.yaml:3)"), "{text}");
}

#[test]
fn effective_configuration_is_yaml_that_parses_to_the_same_values() {
    let documents = [
        None,
        Some("sandboxing:\n  overrides: {terminal: native}\n  native: {cpu_limit: '1.5'}\n"),
        Some("agents: [{name: a, description: 'it: is # a {text}, yes', argv: [x, '{prompt}']}]\n"),
    ];
    for document in documents {
        let values = of(document, &Overrides::default());
        let text = lines(&values, "f.yaml");
        let again = of(Some(&text), &Overrides::default());
        let shown = |values: &[EffectiveValue]| {
            values
                .iter()
                .map(|value| (value.path.clone(), value.value.clone()))
                .filter(|(_, value)| matches!(value, ShownValue::Value { .. }))
                .map(|(path, value)| match value {
                    ShownValue::Value { json, .. } => (path, json),
                    _ => (path, json!(null)),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&values), shown(&again), "{text}");
    }
}
