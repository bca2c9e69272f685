//! Audit record of a call under way.

use super::budget::{CallProgress, Reservation};
use super::models::{Model, Price, ProviderKind};
use super::observe::Usage;
use super::refusal::Refusal;
use super::relay::CutReason;
use super::run::Run;
use super::token_demand::Demand;
use crate::http1::{RequestHead, ResponseHead};
use belljar_contract::id::CallId;
use belljar_contract::inference::{
    ApiDialect, BodiesRecord, Body, CallOutcome, CallRecord, CallStartRecord, Cost, Excerpt, ReasonCode,
    ReportedUsage, Route, UsageSource,
};
use jiff::Timestamp;
use std::time::Instant;
use uuid::Uuid;

/// Builds the record of a call. Every way that a call can end writes it.
pub(crate) struct CallRecordBuilder<'r> {
    run: &'r Run,
    is_written: bool,
    /// True if the audit log has the record that the provider is asked.
    has_begun_on_disk: bool,
    call_id: CallId,
    started_at: Timestamp,
    since: Instant,
    route: Route,
    surface: ApiDialect,
    asked_model: Option<Excerpt>,
    model: Option<Excerpt>,
    provider: Option<Excerpt>,
    provider_kind: Option<ProviderKind>,
    /// Price of the model, if one is known.
    price: Option<Price>,
    streams: bool,
    status: Option<u16>,
    upstream_status: Option<u16>,
    upstream_request_id: Option<Excerpt>,
    first_byte_ms: Option<u64>,
    /// Cost that the head of the answer states.
    cost_in_head: Option<Cost>,
    usage: Usage,
    reservation: Option<Reservation<'r>>,
    /// Bodies of the request and the answer, if those are kept.
    bodies: Option<(Body, Vec<u8>)>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
}

// === impl CallRecordBuilder ===

impl<'r> CallRecordBuilder<'r> {
    pub(crate) fn new(run: &'r Run, head: &RequestHead) -> Self {
        Self::of(run, &head.method, &head.path)
    }

    /// Record of a request that can't be parsed.
    pub(crate) fn unreadable(run: &'r Run) -> Self {
        Self::of(run, "", "")
    }

    fn of(run: &'r Run, method: &str, path: &str) -> Self {
        let surface = super::route::shape_of(path);
        Self {
            run,
            is_written: false,
            has_begun_on_disk: false,
            call_id: CallId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            route: Route { method: Excerpt::of(method), path: Excerpt::of(path) },
            surface,
            asked_model: None,
            model: None,
            provider: None,
            provider_kind: None,
            price: None,
            streams: false,
            status: None,
            upstream_status: None,
            upstream_request_id: None,
            first_byte_ms: None,
            cost_in_head: None,
            usage: Usage::default(),
            reservation: None,
            bodies: None,
            request_bytes: 0,
            response_bytes: 0,
        }
    }

    pub(crate) fn call_id(&self) -> &str {
        self.call_id.as_str()
    }

    /// Notes the provider and the model.
    pub(crate) fn prepared(&mut self, model: &Model, streams: bool) {
        self.asked_model = Some(Excerpt::of(&model.name));
        self.model = Some(Excerpt::of(&model.upstream_name));
        self.provider = Some(Excerpt::of(&model.provider.name));
        self.provider_kind = Some(model.provider.kind);
        self.price = model.price();
        self.streams = streams;
    }

    /// Reserves the call in the budget; it counts from now on, however it ends. Returns the output limit for each choice, if
    /// one has to be set.
    pub(crate) async fn reserve(&mut self, demand: &Demand) -> Result<Option<u64>, Refusal> {
        let reservation = self.run.budget.begin(demand, self.price).await?;
        let output = reservation.output();
        self.reservation = Some(reservation);
        Ok(output)
    }

    /// Writes the record that the provider is asked. It comes before anything is sent to the provider.
    pub(crate) async fn begin_on_disk(&mut self) -> Result<(), Refusal> {
        self.has_begun_on_disk = true;
        let begun = CallStartRecord {
            call_id: self.call_id.clone(),
            run_id: self.run.identity.run_id.clone(),
            attempt: self.run.identity.attempt,
            billing_account_id: Excerpt::of(&self.run.identity.billing_account_id),
            graph_id: Excerpt::of(&self.run.identity.graph_id),
            started_at: self.started_at,
            route: self.route.clone(),
            model: named(&self.model),
            provider: named(&self.provider),
            request_bytes: self.request_bytes,
        };
        self.run.budget.audit.count(&begun);
        if self.run.ledger.begin(begun).await { Ok(()) } else { Err(Refusal::NotRecorded) }
    }

    /// Notes the request's body, if bodies are kept.
    pub(crate) fn said(&mut self, body: &[u8]) {
        if self.run.keeps_bodies {
            self.bodies = Some((body_of(body, body.len() as u64), Vec::new()));
        }
    }

    /// Notes a piece of the answer, if bodies are kept.
    pub(crate) fn heard(&mut self, piece: &[u8]) {
        if let Some((_, heard)) = &mut self.bodies {
            let room = Body::LONGEST_BYTES.saturating_sub(heard.len());
            heard.extend_from_slice(piece.get(..room).unwrap_or(piece));
        }
    }

    /// Notes that the request was sent to the provider, or may have been.
    pub(crate) fn sent(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.is_sent = true;
        }
    }

    /// Notes the head of the answer. If it contains a secret, only the status is noted.
    pub(crate) fn answered(&mut self, answer: &ResponseHead, is_harmless: bool) {
        self.upstream_status = Some(answer.status);
        self.first_byte_ms = Some(self.elapsed_ms());
        if !is_harmless {
            return;
        }
        let id = answer.header("x-request-id").or_else(|| answer.header("request-id"));
        self.upstream_request_id = id.map(|id| Excerpt::of(&String::from_utf8_lossy(id)));
        // LiteLLM states the cost for complete answers. For a stream it writes the header before the cost is known.
        if self.provider_kind == Some(ProviderKind::LiteLlm) && !self.streams && answer.status < 400 {
            let cost = answer.header("x-litellm-response-cost");
            let cost = cost.and_then(|cost| std::str::from_utf8(cost).ok());
            self.cost_in_head = cost.and_then(|cost| Cost::parse(cost).ok());
        }
    }

    /// Notes that the client got the beginning of the answer.
    pub(crate) fn begin(&mut self) {
        self.status = self.upstream_status;
    }

    /// Returns true if the client got the beginning of an answer.
    pub(crate) fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Notes the usage that the answer states.
    pub(crate) fn spent(&mut self, said: Usage) {
        self.usage = said;
    }

    /// Ends the record: the host has answered by itself.
    pub(crate) fn tell(mut self) {
        self.status = Some(200);
        self.write(CallOutcome::Completed);
    }

    /// Ends the record: the answer was forwarded.
    pub(crate) fn complete(mut self) {
        self.write(CallOutcome::Completed);
    }

    /// Ends the record: the client gets the reason of the refusal.
    pub(crate) fn refuse(mut self, refusal: &Refusal) {
        if let Refusal::ModelNotAllowed { asked, .. } = refusal {
            self.asked_model = Some(asked.clone());
        }
        self.status = Some(refusal.status());
        let code = ReasonCode::of(refusal.code());
        let outcome = match refusal.is_providers() {
            true => CallOutcome::Failed { code },
            false => CallOutcome::Denied { reason: code },
        };
        self.write(outcome);
    }

    /// Ends the record: the answer was cut off.
    pub(crate) fn cut(mut self, cut: CutReason) {
        let code = match cut {
            CutReason::Gone => return self.write(CallOutcome::Canceled),
            CutReason::Broken => "provider_cut",
            CutReason::Silent => "provider_timeout",
            CutReason::Echo => "credential_echoed",
            CutReason::TooLarge => "provider_answer_too_large",
        };
        self.write(CallOutcome::Failed { code: ReasonCode::of(code) });
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the usage and cost that the provider reports, with their source.
    fn reported(&mut self) -> Option<ReportedUsage> {
        let in_head = self.cost_in_head.take();
        let source = match (&in_head, self.streams) {
            (Some(_), _) => UsageSource::Header,
            (None, true) => UsageSource::Stream,
            (None, false) => UsageSource::Body,
        };
        let Usage { input_tokens, output_tokens, ref cost, .. } = self.usage;
        let cost_usd = in_head.or_else(|| cost.clone());
        let says_something = input_tokens.is_some() || output_tokens.is_some() || cost_usd.is_some();
        says_something.then_some(ReportedUsage { source, input_tokens, output_tokens, cost_usd })
    }

    /// Writes the bodies before the record of the call. So everything about the call is there once its record is.
    fn write_bodies(&mut self, outcome: &CallOutcome) {
        let is_sent = self.reservation.as_ref().is_some_and(|reservation| reservation.is_sent);
        let Some((request, heard)) = self.bodies.take().filter(|_| is_sent) else { return };
        // The bodies contain a credential or its beginning.
        let is_harmless = !matches!(outcome, CallOutcome::Failed { code }
            if ["credential_echoed", "provider_answer_withheld"].contains(&code.as_str()));
        let response = match is_harmless {
            true => body_of(&heard, self.response_bytes),
            false => Body::default(),
        };
        let (call_id, run_id) = (self.call_id.clone(), self.run.identity.run_id.clone());
        let bodies = BodiesRecord { call_id, run_id, request, response };
        self.run.budget.audit.count(&bodies);
        self.run.ledger.record_bodies(bodies);
    }

    /// Writes a record. If no provider was asked and it repeats the record before, it is only counted.
    fn enter(&self, record: CallRecord) {
        let run = self.run;
        // Part that equal refusals have in common. It can always be serialized.
        let key = || {
            let common = (&record.route, &record.model_asked, &record.outcome, record.status);
            serde_json::to_string(&common).unwrap_or_default()
        };
        let key = (!self.has_begun_on_disk).then(key);
        let told = (&record, record.call_id.as_str());
        let entered = run.budget.audit.enter(&run.identity.run_id, told, (key, record.started_at));
        entered.folded.into_iter().for_each(|folded| run.ledger.record_folded(folded));
        if entered.is_whole {
            run.ledger.record(record);
        }
    }

    fn write(&mut self, outcome: CallOutcome) {
        self.is_written = true;
        let total_ms = self.elapsed_ms();
        let usage = self.reported();
        self.write_bodies(&outcome);
        if let Some(reservation) = self.reservation.take() {
            let is_whole = outcome == CallOutcome::Completed;
            let bytes = self.request_bytes.saturating_add(self.response_bytes);
            let is_error = self.upstream_status.is_some_and(|status| status >= 400);
            let extent = CallProgress { is_whole, is_error, bytes };
            reservation.spend(usage.as_ref(), &self.usage, extent);
        }
        let record = CallRecord {
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
            usage,
            upstream_request_id: self.upstream_request_id.take(),
            is_streamed: self.streams,
        };
        self.enter(record);
    }
}

impl Drop for CallRecordBuilder<'_> {
    fn drop(&mut self) {
        // The run has ended, and its calls with it.
        if !self.is_written {
            self.write(CallOutcome::Canceled);
        }
    }
}

/// The name is known once the call is prepared.
fn named(name: &Option<Excerpt>) -> Excerpt {
    name.clone().unwrap_or_else(|| Excerpt::of(""))
}

/// Returns the beginning of a body.
fn body_of(beginning: &[u8], bytes: u64) -> Body {
    let beginning = beginning.get(..Body::LONGEST_BYTES).unwrap_or(beginning);
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    // Replacement characters may be longer than the bytes that they replace.
    text.truncate(text.floor_char_boundary(Body::LONGEST_BYTES));
    Body { bytes, text }
}
