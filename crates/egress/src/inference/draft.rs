//! The record of a call, while it is made.

use super::models::ProviderKind;
use super::observe::Usage;
use super::refusal::Refusal;
use super::relay::Cut;
use super::request::Prepared;
use super::run::Run;
use crate::http1::{RequestHead, ResponseHead};
use belljar_contract::inference::{CallOutcome, CallRecord, CostSource, Surface};
use jiff::Timestamp;
use std::time::Instant;
use uuid::Uuid;

/// Such a record. Every way that a call can end writes it down.
pub(crate) struct Draft<'r> {
    run: &'r Run,
    is_written: bool,
    call_id: String,
    started_at: Timestamp,
    since: Instant,
    method: String,
    path: String,
    surface: Surface,
    asked_model: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    is_litellm: bool,
    streams: bool,
    status: Option<u16>,
    upstream_status: Option<u16>,
    upstream_request_id: Option<String>,
    first_byte_ms: Option<u64>,
    cost_source: Option<CostSource>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) usage: Usage,
}

// === impl Draft ===

impl<'r> Draft<'r> {
    pub(crate) fn new(run: &'r Run, head: &RequestHead) -> Self {
        Self::of(run, clipped(&head.method), clipped(&head.path))
    }

    /// Of what can't be read.
    pub(crate) fn unreadable(run: &'r Run) -> Self {
        Self::of(run, String::new(), String::new())
    }

    fn of(run: &'r Run, method: String, path: String) -> Self {
        let surface = super::route::shape_of(&path);
        Self {
            run,
            is_written: false,
            call_id: Uuid::now_v7().to_string(),
            started_at: Timestamp::now(),
            since: Instant::now(),
            method,
            path,
            surface,
            asked_model: None,
            model: None,
            provider: None,
            is_litellm: false,
            streams: false,
            status: None,
            upstream_status: None,
            upstream_request_id: None,
            first_byte_ms: None,
            cost_source: None,
            request_bytes: 0,
            response_bytes: 0,
            usage: Usage::default(),
        }
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Notes who is asked.
    pub(crate) fn prepared(&mut self, prepared: &Prepared) {
        self.asked_model = Some(prepared.model.name.clone());
        self.model = Some(prepared.model.upstream_name.clone());
        self.provider = Some(prepared.model.provider.name.clone());
        self.is_litellm = prepared.model.provider.kind == ProviderKind::LiteLlm;
        self.streams = prepared.streams;
    }

    /// Notes the head of the answer.
    pub(crate) fn answered(&mut self, answer: &ResponseHead) {
        self.upstream_status = Some(answer.status);
        self.first_byte_ms = Some(self.elapsed_ms());
        let id = answer.header("x-request-id").or_else(|| answer.header("request-id"));
        self.upstream_request_id = id.map(|id| clipped(&String::from_utf8_lossy(id)));
    }

    /// The answer is passed on from now on.
    pub(crate) fn begin(&mut self) {
        self.status = self.upstream_status;
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Notes what it has cost: LiteLLM says it in a header where the answer is whole.
    pub(crate) fn spent(&mut self, said: Usage, answer: &ResponseHead) {
        self.usage = said;
        self.cost_source = said.cost.map(|_| CostSource::Body);
        if !self.is_litellm {
            return;
        }
        let cost = answer.header("x-litellm-response-cost").and_then(|cost| std::str::from_utf8(cost).ok());
        let cost =
            cost.and_then(|cost| cost.parse().ok()).filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
        // With a stream the header is written before anything has been paid for.
        if let Some(cost) = cost.filter(|_| !self.streams) {
            self.usage.cost = Some(cost);
            self.cost_source = Some(CostSource::Header);
        }
    }

    /// It is over, and the answer was passed on.
    pub(crate) fn complete(mut self) {
        self.write(CallOutcome::Completed);
    }

    /// It is over, and the caller is told why.
    pub(crate) fn refuse(mut self, refusal: &Refusal) {
        if let Refusal::ModelNotAllowed { asked, .. } = refusal {
            self.asked_model = Some(clipped(asked));
        }
        self.status = Some(refusal.status());
        let code = refusal.code().to_owned();
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
        self.write(CallOutcome::Failed { code: code.to_owned() });
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn write(&mut self, outcome: CallOutcome) {
        self.is_written = true;
        let total_ms = self.elapsed_ms();
        let take = std::mem::take::<Option<String>>;
        self.run.ledger.record(CallRecord {
            call_id: std::mem::take(&mut self.call_id),
            run_id: self.run.identity.run_id.clone(),
            attempt: self.run.identity.attempt,
            started_at: self.started_at,
            method: std::mem::take(&mut self.method),
            path: std::mem::take(&mut self.path),
            surface: self.surface,
            requested_model: take(&mut self.asked_model),
            model: take(&mut self.model),
            provider: take(&mut self.provider),
            outcome,
            status: self.status,
            upstream_status: self.upstream_status,
            upstream_request_id: take(&mut self.upstream_request_id),
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            is_streamed: self.streams,
            first_byte_ms: self.first_byte_ms,
            total_ms,
            input_tokens: self.usage.input_tokens,
            output_tokens: self.usage.output_tokens,
            cost_usd: self.usage.cost,
            cost_source: self.cost_source,
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

/// As much of it as needs to be written down.
pub(crate) fn clipped(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().take(LONGEST).collect()
}
