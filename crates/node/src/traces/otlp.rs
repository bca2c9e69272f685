//! Spans in OpenTelemetry's protocol: the only module that uses its crates, which change often.

use super::span::{AttributeValue, Span};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyOf;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Told, Status};
use prost::Message;

pub(super) const CONTENT_TYPE: &str = "application/x-protobuf";

/// The `sampled` flag of W3C's trace context.
const SAMPLED: u32 = 1;

/// Returns the export request for these spans.
pub(super) fn document(node: &str, spans: &[Span]) -> Vec<u8> {
    let resource = Resource {
        attributes: vec![
            attribute("service.name", &AttributeValue::from("belljar-node")),
            attribute("service.version", &AttributeValue::from(env!("CARGO_PKG_VERSION"))),
            attribute("service.instance.id", &AttributeValue::from(node)),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope { name: "belljar".to_owned(), ..InstrumentationScope::default() };
    let spans = spans.iter().map(told).collect();
    let of_scope = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
    let of_resource =
        ResourceSpans { resource: Some(resource), scope_spans: vec![of_scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

fn told(span: &Span) -> Told {
    let status =
        span.failure.as_ref().map(|why| Status { message: why.clone(), code: StatusCode::Error.into() });
    Told {
        trace_id: span.trace.to_vec(),
        span_id: span.id.to_vec(),
        parent_span_id: span.parent.map(Vec::from).unwrap_or_default(),
        name: span.name.to_string(),
        kind: if span.is_call { SpanKind::Client } else { SpanKind::Internal }.into(),
        start_time_unix_nano: span.began,
        end_time_unix_nano: span.ended,
        attributes: span.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        status,
        flags: SAMPLED,
        ..Told::default()
    }
}

fn attribute(name: &str, value: &AttributeValue) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => AnyOf::StringValue(text.clone()),
        AttributeValue::Number(number) => AnyOf::IntValue(*number),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
