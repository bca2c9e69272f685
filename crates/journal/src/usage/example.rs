//! Example calls for tests of usage reports.

use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{
    ApiDialect, CallOutcome, CallRecord, Cost, Excerpt, ProviderKind, ReportedUsage, Route, UsageSource,
};

pub(crate) const RUN: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

pub(crate) fn id(number: u16) -> CallId {
    CallId::parse(&format!("0192f0c1-7d3e-7c4a-9b1e-00000000{number:04x}")).unwrap()
}

pub(crate) fn call(number: u16) -> CallRecord {
    CallRecord {
        call_id: id(number),
        run_id: RunId::parse(RUN).unwrap(),
        attempt: 0,
        billing_account_id: Excerpt::of("account-7"),
        graph_id: Excerpt::of("sandbox:agent"),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        route: Route { method: Excerpt::of("POST"), path: Excerpt::of("/v1/chat/completions") },
        surface: ApiDialect::Openai,
        model_asked: Some(Excerpt::of("small")),
        model_used: Some(Excerpt::of("gpt-4o-mini")),
        provider: Some(Excerpt::of("house")),
        provider_kind: Some(ProviderKind::LiteLlm),
        status: Some(200),
        upstream_status: Some(200),
        outcome: CallOutcome::Completed,
        request_bytes: 1,
        response_bytes: 1,
        first_byte_ms: Some(1),
        total_ms: 1_000,
        usage: Some(ReportedUsage {
            source: UsageSource::Header,
            input_tokens: Some(12),
            output_tokens: Some(7),
            cost_usd: Some(Cost::parse("1.35e-05").unwrap()),
        }),
        upstream_request_id: None,
        is_streamed: false,
    }
}
