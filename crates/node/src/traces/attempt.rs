//! The spans of one attempt at a job. Of the job's own data they contain only the kinds and results of its steps: no prompts,
//! arguments, output or variables.

use super::span::{AttributeValue, ClockAnchor, Span, nanoseconds, new_id, root_of, trace_of};
use belljar_confine::stage::Timings;
use belljar_contract::egress::{ProxiedRequestOutcome, ProxiedRequestRecord};
use belljar_contract::failure::FailureCode;
use belljar_contract::id::RunId;
use belljar_contract::inference::{CallOutcome, CallRecord};
use belljar_contract::result::{StepResult, StepStatus};
use belljar_contract::worker::state::JobState;
use belljar_store::jobs::JobRecord;
use std::borrow::Cow;
use std::time::Instant;

/// Data noted when an attempt begins.
#[derive(Debug, Clone)]
pub(crate) struct AttemptStart {
    pub(crate) job: JobRecord,
    pub(crate) taken: Instant,
    pub(crate) anchor: ClockAnchor,
}

/// Data noted while it runs.
#[derive(Debug, Clone)]
pub(crate) struct AttemptRun {
    pub(crate) run_id: RunId,
    /// Its sandbox's runtime.
    pub(crate) runtime: &'static str,
    pub(crate) stood: Instant,
    pub(crate) ended: Instant,
    pub(crate) timings: Timings,
    pub(crate) steps: Vec<TracedStep>,
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) passages: Vec<ProxiedRequestRecord>,
}

/// A step, as its runner reports it.
#[derive(Debug, Clone)]
pub(crate) struct TracedStep {
    kind: &'static str,
    index: usize,
    has_failed: bool,
    began: u64,
    ended: u64,
}

/// Data noted at its end.
#[derive(Debug, Clone)]
pub(crate) struct AttemptEnd {
    /// When its artifacts were stored.
    pub(crate) kept: Instant,
    /// When its outcome was recorded.
    pub(crate) recorded: Instant,
    /// State of the job then; `None` if unknown here.
    pub(crate) state: Option<JobState>,
    pub(crate) failure: Option<FailureCode>,
}

/// Builder of nested spans in one trace.
struct TraceBuilder<'n> {
    id: [u8; 16],
    noted: &'n AttemptStart,
    spans: Vec<Span>,
}

/// Maximum number of steps of one attempt that get spans, so that others' spans have room in the queue.
const MOST_STEPS: usize = 1_000;

pub(super) fn spans(
    node: &str,
    noted: &AttemptStart,
    ran: Option<&AttemptRun>,
    ended: &AttemptEnd,
) -> Vec<Span> {
    let job_id = noted.job.job_id.as_str();
    let root = root_of(job_id);
    let mut trace = TraceBuilder { id: trace_of(job_id), noted, spans: Vec::new() };
    let accepted = nanoseconds(noted.job.accepted_at).min(trace.at(noted.taken));
    let state = ended.state.map_or("unknown", JobState::as_str);
    let of_job = |trace: &TraceBuilder<'_>| {
        let life = &trace.noted.job.life;
        vec![
            ("belljar.job_id", AttributeValue::from(job_id)),
            ("belljar.task_id", trace.noted.job.task_id.as_str().into()),
            ("belljar.node", node.into()),
            ("belljar.attempt", u64::from(life.attempt).into()),
            ("belljar.state", state.into()),
        ]
    };
    let attributes = of_job(&trace);
    let failure = ended.failure.map(|code| code.as_str().to_owned());
    if noted.job.life.attempt == 1 {
        trace.add(Some(root), "queue", (accepted, trace.at(noted.taken)));
    }
    let whole = (trace.at(noted.taken), trace.at(ended.recorded));
    let attempt = trace.add(Some(root), "attempt", whole);
    trace.last(attributes.clone(), failure.clone());
    if let Some(ran) = ran {
        trace.ran(attempt, ran);
        trace.add(Some(attempt), "collect", (trace.at(ran.ended), trace.at(ended.kept)));
    }
    trace.add(Some(attempt), "record", (trace.at(ended.kept), trace.at(ended.recorded)));
    if ended.state.is_some_and(JobState::is_final) {
        trace.add(None, "job", (accepted, trace.at(ended.recorded)));
        trace.last(attributes, failure);
        if let Some(span) = trace.spans.last_mut() {
            span.id = root;
        }
    }
    trace.spans
}

// === impl TraceBuilder ===

impl TraceBuilder<'_> {
    fn at(&self, instant: Instant) -> u64 {
        self.noted.anchor.time(instant)
    }

    /// Adds a span; returns its id. A span never ends before it begins.
    fn add(
        &mut self,
        parent: Option<[u8; 8]>,
        name: impl Into<Cow<'static, str>>,
        (began, ended): (u64, u64),
    ) -> [u8; 8] {
        let id = new_id();
        let ended = ended.max(began);
        let (trace, name, attributes) = (self.id, name.into(), Vec::new());
        self.spans.push(Span {
            trace,
            id,
            parent,
            name,
            is_call: false,
            began,
            ended,
            attributes,
            failure: None,
        });
        id
    }

    /// Adds details to the last span.
    fn last(&mut self, attributes: Vec<(&'static str, AttributeValue)>, failure: Option<String>) {
        if let Some(span) = self.spans.last_mut() {
            span.attributes = attributes;
            span.failure = failure;
        }
    }

    fn ran(&mut self, attempt: [u8; 8], ran: &AttemptRun) {
        let (stood, ended) = (self.at(ran.stood), self.at(ran.ended));
        let sandbox = self.add(Some(attempt), "sandbox", (self.at(self.noted.taken), stood));
        self.last(
            vec![("belljar.run_id", ran.run_id.as_str().into()), ("belljar.runtime", ran.runtime.into())],
            None,
        );
        let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(0);
        let mut began = stood.saturating_sub(ran.timings.iter().map(|(_, took)| nanos(took)).sum());
        for (stage, took) in ran.timings.iter() {
            let over = began.saturating_add(nanos(took));
            self.add(Some(sandbox), format!("stage {stage}"), (began, over));
            began = over;
        }
        let run = self.add(Some(attempt), "run", (stood, ended));
        let within = |(began, over): (u64, u64)| {
            (began.clamp(stood, ended.max(stood)), over.clamp(stood, ended.max(stood)))
        };
        for step in ran.steps.iter().take(MOST_STEPS) {
            self.add(Some(run), "step", within((step.began, step.ended)));
            let index = u64::try_from(step.index).unwrap_or(u64::MAX);
            let failure = step.has_failed.then(|| "failure".to_owned());
            self.last(
                vec![("belljar.step.type", step.kind.into()), ("belljar.step.index", index.into())],
                failure,
            );
        }
        for call in &ran.calls {
            self.call(run, call, within);
        }
        for passage in &ran.passages {
            self.passage(run, passage, within);
        }
    }

    /// The host is left out: a program could transmit data in the host names that it requests.
    fn passage(
        &mut self,
        run: [u8; 8],
        passage: &ProxiedRequestRecord,
        within: impl Fn((u64, u64)) -> (u64, u64),
    ) {
        let began = nanoseconds(passage.started_at);
        let over = began.saturating_add(passage.total_ms.saturating_mul(1_000_000));
        self.add(Some(run), "web", within((began, over)));
        let mut attributes = vec![
            ("belljar.passage_id", AttributeValue::from(passage.passage_id.as_str())),
            ("belljar.web.sent_bytes", passage.sent_bytes.into()),
            ("belljar.web.received_bytes", passage.received_bytes.into()),
        ];
        attributes.extend(passage.rule.map(|rule| ("belljar.web.rule", rule.into())));
        attributes
            .extend(passage.status.map(|status| ("http.response.status_code", u64::from(status).into())));
        let failure = match &passage.outcome {
            ProxiedRequestOutcome::Completed => None,
            ProxiedRequestOutcome::Denied { reason: code } | ProxiedRequestOutcome::Failed { code } => {
                Some(code.as_str().to_owned())
            }
        };
        attributes.extend(failure.as_deref().map(|code| ("error.type", code.into())));
        self.last(attributes, failure);
        if let Some(span) = self.spans.last_mut() {
            span.is_call = true;
        }
    }

    /// Follows the semantic conventions for model calls.
    fn call(&mut self, run: [u8; 8], call: &CallRecord, within: impl Fn((u64, u64)) -> (u64, u64)) {
        let began = nanoseconds(call.started_at);
        let over = began.saturating_add(call.total_ms.saturating_mul(1_000_000));
        // A requested model that doesn't exist may be any text, so only the model used is included.
        let model = call.model_used.as_ref().map_or("", |model| model.as_str());
        self.add(Some(run), format!("chat {model}").trim_end().to_owned(), within((began, over)));
        let mut attributes = vec![
            ("gen_ai.operation.name", AttributeValue::from("chat")),
            ("gen_ai.request.model", model.into()),
            ("belljar.call_id", call.call_id.as_str().into()),
        ];
        attributes.extend(call.provider.as_ref().map(|name| ("gen_ai.provider.name", name.as_str().into())));
        attributes.extend(call.status.map(|status| ("http.response.status_code", u64::from(status).into())));
        if let Some(usage) = &call.usage {
            attributes.extend(usage.input_tokens.map(|count| ("gen_ai.usage.input_tokens", count.into())));
            attributes.extend(usage.output_tokens.map(|count| ("gen_ai.usage.output_tokens", count.into())));
        }
        let failure = match &call.outcome {
            CallOutcome::Completed => None,
            CallOutcome::Denied { reason: code } | CallOutcome::Failed { code } => {
                Some(code.as_str().to_owned())
            }
            CallOutcome::Canceled => Some("canceled".to_owned()),
        };
        attributes.extend(failure.as_deref().map(|code| ("error.type", code.into())));
        self.last(attributes, failure);
        if let Some(span) = self.spans.last_mut() {
            span.is_call = true;
        }
    }
}

// === impl TracedStep ===

impl TracedStep {
    /// Returns the steps that have begun. Their times come from inside the sandbox, so they are clamped to the run's.
    pub(crate) fn all(results: &[StepResult]) -> Vec<Self> {
        let of_one = |step: &StepResult| {
            Some(Self {
                kind: step.step_type.as_str(),
                index: step.index,
                has_failed: step.status != StepStatus::Success,
                began: nanoseconds(step.started_at?),
                ended: nanoseconds(step.finished_at?),
            })
        };
        results.iter().filter_map(of_one).collect()
    }
}
