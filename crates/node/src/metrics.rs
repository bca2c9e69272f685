//! Metrics of a node, in the format of Prometheus (`GET /metrics`, OpenMetrics).
//!
//! Each metric is updated where its event happens. The compiler reports a metric that is never updated, as an unused field.

use belljar_contract::worker::operation::Operation;
use belljar_contract::worker::state::JobState;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The metrics. Clones share their values.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    jobs_accepted: Counter,
    jobs_ended: Family<JobEndLabels, Counter>,
    jobs_running: Gauge,
    job_wait: Histogram,
    sandbox_start: Histogram,
    job_duration: Histogram,
    job_reports: Counter,
    extensions: Family<ExtensionLabels, Counter>,
    model_calls: Counter,
    callbacks: Family<CallbackLabels, Counter>,
    sessions_open: Gauge,
    session_commands: Counter,
    requests: Family<ApiRequestLabels, Counter>,
    spans: Family<SpanLabels, Counter>,
    web_requests: Family<WebRequestLabels, Counter>,
    web_policy: Gauge,
    web_policy_changes: Family<PolicyReloadLabels, Counter>,
}

/// Labels of spans.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SpanLabels {
    exported: String,
}

/// Labels of requests to the web.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WebRequestLabels {
    allowed: String,
}

/// Labels of policy reloads.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PolicyReloadLabels {
    taken: String,
}

/// Labels of ended jobs.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct JobEndLabels {
    status: String,
}

/// Labels of requests for more time.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExtensionLabels {
    granted: String,
}

/// Labels of callbacks.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallbackLabels {
    taken: String,
}

/// Labels of API requests: operation and status.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ApiRequestLabels {
    operation: String,
    code: u16,
}

/// Counts a running job until it is dropped.
pub(crate) struct RunningJobGuard(Gauge);

/// Content type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Buckets of durations in seconds, from one millisecond to three hours.
const SECONDS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 600.0, 3_600.0, 10_800.0];

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        let histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            registry: Arc::default(),
            jobs_accepted: Counter::default(),
            jobs_ended: Family::default(),
            jobs_running: Gauge::default(),
            job_wait: histogram(),
            sandbox_start: histogram(),
            job_duration: histogram(),
            job_reports: Counter::default(),
            extensions: Family::default(),
            model_calls: Counter::default(),
            callbacks: Family::default(),
            sessions_open: Gauge::default(),
            session_commands: Counter::default(),
            requests: Family::default(),
            spans: Family::default(),
            web_requests: Family::default(),
            web_policy: Gauge::default(),
            web_policy_changes: Family::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let mut registry = Registry::with_prefix("belljar");
        registry.register("jobs_accepted", "Jobs that were accepted", self.jobs_accepted.clone());
        registry.register("jobs_ended", "Jobs that were over, by how", self.jobs_ended.clone());
        registry.register("jobs_running", "Jobs that are carried out now", self.jobs_running.clone());
        let mut timed = |name: &str, help: &str, histogram: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        };
        timed("job_wait", "From when a job is accepted until it is taken", &self.job_wait);
        timed("sandbox_start", "From when a job is taken until its sandbox stands", &self.sandbox_start);
        timed(
            "job_duration",
            "From when a job is taken until it is recorded how it ended",
            &self.job_duration,
        );
        registry.register("job_reports", "What jobs have reported of themselves", self.job_reports.clone());
        registry.register("extensions", "Requests of jobs for more time", self.extensions.clone());
        registry.register("model_calls", "Calls of models that jobs have made", self.model_calls.clone());
        registry.register("callbacks", "Messages to orchestrators", self.callbacks.clone());
        registry.register("sessions_open", "Sessions that are open now", self.sessions_open.clone());
        registry.register("session_commands", "Commands run in sessions", self.session_commands.clone());
        registry.register("requests", "Requests, by what was asked for and answered", self.requests.clone());
        registry.register("spans", "Spans of traces, by whether they were taken", self.spans.clone());
        registry.register(
            "web_requests",
            "Requests and tunnels to the web, by whether they were let through",
            self.web_requests.clone(),
        );
        registry.register("web_policy_generation", "Which policy counts, from 1", self.web_policy.clone());
        registry.register(
            "web_policy_changes",
            "Changes of the file with the policy, by whether they count",
            self.web_policy_changes.clone(),
        );
        self.registry = Arc::new(registry);
        self
    }

    /// Returns all metrics as text. The caller passes the number of open sessions.
    pub(crate) fn text(&self, sessions_open: usize) -> String {
        self.sessions_open.set(i64::try_from(sessions_open).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn job_accepted(&self) {
        self.jobs_accepted.inc();
    }

    /// A job was taken from the queue after that wait.
    pub(crate) fn job_taken(&self, waited: Duration) -> RunningJobGuard {
        self.job_wait.observe(waited.as_secs_f64());
        self.jobs_running.inc();
        RunningJobGuard(self.jobs_running.clone())
    }

    pub(crate) fn sandbox_stands(&self, taken: Instant) {
        self.sandbox_start.observe(taken.elapsed().as_secs_f64());
    }

    /// The end of a job was recorded; `taken` is `None` if it never ran here.
    pub(crate) fn job_ended(&self, state: JobState, taken: Option<Instant>) {
        self.jobs_ended.get_or_create(&JobEndLabels { status: state.as_str().to_owned() }).inc();
        if let Some(taken) = taken {
            self.job_duration.observe(taken.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn job_reported(&self) {
        self.job_reports.inc();
    }

    pub(crate) fn extension_asked(&self, granted: bool) {
        self.extensions.get_or_create(&ExtensionLabels { granted: granted.to_string() }).inc();
    }

    pub(crate) fn models_called(&self, calls: u64) {
        self.model_calls.inc_by(calls);
    }

    pub(crate) fn callback_sent(&self, taken: bool) {
        self.callbacks.get_or_create(&CallbackLabels { taken: taken.to_string() }).inc();
    }

    pub(crate) fn command_run(&self) {
        self.session_commands.inc();
    }

    pub(crate) fn spans_exported(&self, count: usize) {
        self.count_spans(true, count);
    }

    pub(crate) fn spans_dropped(&self, count: usize) {
        self.count_spans(false, count);
    }

    fn count_spans(&self, exported: bool, count: usize) {
        if count > 0 {
            let told = SpanLabels { exported: exported.to_string() };
            self.spans.get_or_create(&told).inc_by(count as u64);
        }
    }

    pub(crate) fn web_asked(&self, allowed: bool) {
        self.web_requests.get_or_create(&WebRequestLabels { allowed: allowed.to_string() }).inc();
    }

    /// The policy file was read: the new policy applies, or the previous one stays.
    pub(crate) fn web_policy_read(&self, taken: bool, generation: u64) {
        self.web_policy.set(i64::try_from(generation).unwrap_or(i64::MAX));
        self.web_policy_changes.get_or_create(&PolicyReloadLabels { taken: taken.to_string() }).inc();
    }

    /// Counts a response. Requests that are no operation are counted as `none`.
    pub(crate) fn answered(&self, operation: Option<Operation>, code: u16) {
        let operation = operation.map_or_else(|| "none".to_owned(), |operation| format!("{operation:?}"));
        self.requests.get_or_create(&ApiRequestLabels { operation, code }).inc();
    }
}

impl Drop for RunningJobGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
