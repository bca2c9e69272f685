//! A call of which everything is known.

use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{
    ApiDialect, CallOutcome, CallRecord, Cost, Excerpt, ProviderKind, ReportedUsage, Route, UsageSource,
};

pub(crate) fn call(outcome: CallOutcome) -> CallRecord {
    CallRecord {
        call_id: CallId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap(),
        run_id: RunId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f").unwrap(),
        attempt: 0,
        billing_account_id: Excerpt::of("account-7"),
        graph_id: Excerpt::of("sandbox:agent"),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        route: Route { method: Excerpt::of("POST"), path: Excerpt::of("/v1/chat/completions") },
        surface: ApiDialect::Openai,
        model_asked: Some(Excerpt::of("small")),
        model_used: Some(Excerpt::of("vendor/small-2")),
        provider: Some(Excerpt::of("house")),
        provider_kind: Some(ProviderKind::LiteLlm),
        status: Some(200),
        upstream_status: Some(200),
        outcome,
        request_bytes: 120,
        response_bytes: 4_000,
        first_byte_ms: Some(80),
        total_ms: 900,
        usage: Some(ReportedUsage {
            source: UsageSource::Stream,
            input_tokens: Some(20),
            output_tokens: Some(7),
            cost_usd: Some(Cost::parse("1.25e-05").unwrap()),
        }),
        upstream_request_id: None,
        is_streamed: true,
    }
}
