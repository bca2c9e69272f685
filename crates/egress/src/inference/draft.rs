//! The record of a call, while it is made.

use super::models::ProviderKind;
use super::observe::Usage;
use super::refusal::Refusal;
use super::relay::Cut;
use super::request::Prepared;
use super::run::Run;
use crate::http1::{RequestHead, ResponseHead};
use belljar_contract::id::CallId;
use belljar_contract::inference::{
    CallOutcome, CallRecord, Cost, Excerpt, ReasonCode, ReportedUsage, Route, Surface, UsageSource,
};
use jiff::Timestamp;
use std::time::Instant;
use uuid::Uuid;

/// Such a record. Every way that a call can end writes it down.
pub(crate) struct Draft<'r> {
    run: &'r Run,
    is_written: bool,
    call_id: CallId,
    started_at: Timestamp,
    since: Instant,
    route: Route,
    surface: Surface,
    asked_model: Option<Excerpt>,
    model: Option<Excerpt>,
    provider: Option<Excerpt>,
    provider_kind: Option<ProviderKind>,
    streams: bool,
    status: Option<u16>,
    upstream_status: Option<u16>,
    upstream_request_id: Option<Excerpt>,
    first_byte_ms: Option<u64>,
    usage_source: UsageSource,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) usage: Usage,
}

// === impl Draft ===

impl<'r> Draft<'r> {
    pub(crate) fn new(run: &'r Run, head: &RequestHead) -> Self {
        Self::of(run, &head.method, &head.path)
    }

    /// Of what can't be read.
    pub(crate) fn unreadable(run: &'r Run) -> Self {
        Self::of(run, "", "")
    }

    fn of(run: &'r Run, method: &str, path: &str) -> Self {
        let surface = super::route::shape_of(path);
        Self {
            run,
            is_written: false,
            call_id: CallId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            route: Route { method: Excerpt::of(method), path: Excerpt::of(path) },
            surface,
            asked_model: None,
            model: None,
            provider: None,
            provider_kind: None,
            streams: false,
            status: None,
            upstream_status: None,
            upstream_request_id: None,
            first_byte_ms: None,
            usage_source: UsageSource::Body,
            request_bytes: 0,
            response_bytes: 0,
            usage: Usage::default(),
        }
    }

    pub(crate) fn call_id(&self) -> &str {
        self.call_id.as_str()
    }

    /// Notes who is asked.
    pub(crate) fn prepared(&mut self, prepared: &Prepared) {
        self.asked_model = Some(Excerpt::of(&prepared.model.name));
        self.model = Some(Excerpt::of(&prepared.model.upstream_name));
        self.provider = Some(Excerpt::of(&prepared.model.provider.name));
        self.provider_kind = Some(prepared.model.provider.kind);
        self.streams = prepared.streams;
    }

    /// Notes the head of the answer; of one in which something stands that must not, the status alone.
    pub(crate) fn answered(&mut self, answer: &ResponseHead, is_harmless: bool) {
        self.upstream_status = Some(answer.status);
        self.first_byte_ms = Some(self.elapsed_ms());
        if !is_harmless {
            return;
        }
        let id = answer.header("x-request-id").or_else(|| answer.header("request-id"));
        self.upstream_request_id = id.map(|id| Excerpt::of(&String::from_utf8_lossy(id)));
        if answer.status < 400 {
            // It is paid for, also if nobody hears it out.
            self.note_cost(answer);
        }
    }

    /// The answer is passed on from now on.
    pub(crate) fn begin(&mut self) {
        self.status = self.upstream_status;
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Notes what the answer says that it has cost.
    pub(crate) fn spent(&mut self, said: Usage, answer: &ResponseHead) {
        self.usage = said;
        self.usage_source = if self.streams { UsageSource::Stream } else { UsageSource::Body };
        self.note_cost(answer);
    }

    /// LiteLLM says it in a header where the answer is whole.
    fn note_cost(&mut self, answer: &ResponseHead) {
        // With a stream the header is written before anything has been paid for.
        if self.provider_kind != Some(ProviderKind::LiteLlm) || self.streams {
            return;
        }
        let cost = answer.header("x-litellm-response-cost").and_then(|cost| std::str::from_utf8(cost).ok());
        if let Some(cost) = cost.and_then(|cost| Cost::parse(cost).ok()) {
            self.usage.cost = Some(cost);
            self.usage_source = UsageSource::Header;
        }
    }

    /// It is over, and the host has answered by itself.
    pub(crate) fn tell(mut self) {
        self.status = Some(200);
        self.write(CallOutcome::Completed);
    }

    /// It is over, and the answer was passed on.
    pub(crate) fn complete(mut self) {
        self.write(CallOutcome::Completed);
    }

    /// It is over, and the caller is told why.
    pub(crate) fn refuse(mut self, refusal: &Refusal) {
        if let Refusal::ModelNotAllowed { asked, .. } = refusal {
            self.asked_model = Some(asked.clone());
        }
        self.status = Some(refusal.status());
        let code = reason(refusal.code());
        let outcome = match refusal.is_providers() {
            true => CallOutcome::Failed { code },
            false => CallOutcome::Denied { reason: code },
        };
        self.write(outcome);
    }

    /// It is over before its end.
    pub(crate) fn cut(mut self, cut: Cut) {
        let code = match cut {
            Cut::Gone => return self.write(CallOutcome::Canceled),
            Cut::Broken => "provider_cut",
            Cut::Silent => "provider_timeout",
            Cut::Echo => "credential_echoed",
            Cut::TooLarge => "provider_answer_too_large",
        };
        self.write(CallOutcome::Failed { code: reason(code) });
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn write(&mut self, outcome: CallOutcome) {
        self.is_written = true;
        let total_ms = self.elapsed_ms();
        let Usage { input_tokens, output_tokens, cost } = self.usage.clone();
        let says_something = input_tokens.is_some() || output_tokens.is_some() || cost.is_some();
        let source = self.usage_source;
        let usage = ReportedUsage { source, input_tokens, output_tokens, cost_usd: cost };
        self.run.ledger.record(CallRecord {
            call_id: self.call_id.clone(),
            run_id: self.run.identity.run_id.clone(),
            attempt: self.run.identity.attempt,
            billing_account_id: Excerpt::of(&self.run.identity.billing_account_id),
            graph_id: Excerpt::of(&self.run.identity.graph_id),
            started_at: self.started_at,
            route: self.route.clone(),
            surface: self.surface,
            model_asked: self.asked_model.take(),
            model_used: self.model.take(),
            provider: self.provider.take(),
            provider_kind: self.provider_kind,
            status: self.status,
            upstream_status: self.upstream_status,
            outcome,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            first_byte_ms: self.first_byte_ms,
            total_ms,
            usage: says_something.then_some(usage),
            upstream_request_id: self.upstream_request_id.take(),
            is_streamed: self.streams,
        });
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // The run has ended, and its calls with it.
        if !self.is_written {
            self.write(CallOutcome::Canceled);
        }
    }
}

/// The names are this crate's own.
fn reason(code: &str) -> ReasonCode {
    ReasonCode::parse(code).unwrap_or_else(|_| unreachable!("{code} is no code"))
}
