//! Traces of jobs, for whoever collects them by OpenTelemetry's protocol (OTLP over HTTP).
//!
//! ```text
//! job                         one trace: its id is the job's, so that all attempts at it are in one, whichever node makes them
//!  ├─ queue                   from its acceptance until it is taken
//!  └─ attempt
//!      ├─ sandbox             until it stands; below it each stage of its launch
//!      ├─ run                 until nothing of it runs; below it each step, and each call of a model
//!      ├─ collect             what it has left is kept
//!      └─ record              what came of it is in the database
//! ```
//! Spans are made when an attempt is over, of what was noted meanwhile by a clock that nobody sets: a trace costs a job nothing
//! while it runs, and whether anybody collects it changes nothing of the job.

mod attempt;
mod export;
mod otlp;
mod span;

pub(crate) use attempt::{Ended, Noted, Ran, Step};
pub(crate) use span::Anchor;

use crate::metrics::Metrics;
use belljar_egress::exchange::Exchanger;
use belljar_egress::upstream::Upstream;
use span::Span;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Who collects traces.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// Where they are; a path in it stands before `path`.
    pub collector: Upstream,
    /// The path that spans are sent to.
    pub path: String,
    /// Headers of every request, such as one that says who sends.
    pub headers: Vec<(String, String)>,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// The traces of a node.
pub(crate) struct Traces {
    /// Nothing where nobody collects them.
    exporting: Option<Exporting>,
    metrics: Metrics,
    node: String,
}

struct Exporting {
    /// Nothing from when it is ended.
    spans: Mutex<Option<mpsc::Sender<Span>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// As many wait for their collector. More are dropped, and counted.
const MOST_WAITING: usize = 8_192;

/// As many calls of models of one attempt are told of.
pub(crate) const MOST_CALLS: usize = 1_000;

/// When the node stops, what waits is sent for so long.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

// === impl Traces ===

impl Traces {
    /// Begins to send what it will be given, in the runtime that this is called in.
    pub(crate) fn start(
        settings: Option<TraceSettings>,
        node: String,
        metrics: &Metrics,
    ) -> std::io::Result<Self> {
        let exporting = settings.map(|settings| -> std::io::Result<_> {
            let (spans, waiting) = mpsc::channel(MOST_WAITING);
            let exporter = export::Exporter {
                settings,
                exchanger: Exchanger::start()?,
                metrics: metrics.clone(),
                node: node.clone(),
            };
            let task = tokio::spawn(exporter.run(waiting));
            Ok(Exporting { spans: Mutex::new(Some(spans)), task: Mutex::new(Some(task)) })
        });
        Ok(Self { exporting: exporting.transpose()?, metrics: metrics.clone(), node })
    }

    /// Whether anybody collects them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.exporting.is_some()
    }

    /// Gives an attempt's spans to whoever sends them; those that there is no room for are dropped.
    pub(crate) fn tell(&self, noted: &Noted, ran: Option<&Ran>, ended: &Ended) {
        let Some(exporting) = &self.exporting else { return };
        let spans = attempt::spans(&self.node, noted, ran, ended);
        let sender = exporting.spans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let taken = |span| sender.as_ref().is_some_and(|sender| sender.try_send(span).is_ok());
        let dropped = spans.into_iter().map(taken).filter(|is_taken| !is_taken).count();
        self.metrics.spans_dropped(dropped);
    }

    /// Sends what waits, for as long as it has patience.
    pub(crate) async fn stop(&self) {
        let Some(exporting) = &self.exporting else { return };
        drop(exporting.spans.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = exporting.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let abort = task.abort_handle();
            if tokio::time::timeout(LAST_PATIENCE, task).await.is_err() {
                abort.abort();
            }
        }
    }
}
