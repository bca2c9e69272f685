//! Traces of jobs, for collectors of OpenTelemetry's protocol (OTLP over HTTP).
//!
//! ```text
//! job                         one trace: its id is the job's, so that all attempts at it are in one, whichever node makes them
//!  ├─ queue                   from its acceptance until it is claimed
//!  └─ attempt
//!      ├─ sandbox             until it is ready; below it each stage of its launch
//!      ├─ run                 until nothing of it runs; below it each step, and each call of a model
//!      ├─ collect             its results are stored
//!      └─ record              its outcome is written to the database
//! ```
//! Spans are made when an attempt is over, from timestamps of a monotonic clock noted meanwhile. So a trace costs a job
//! nothing while it runs, and a job behaves the same with and without a collector.

mod attempt;
mod export;
mod otlp;
mod span;

pub(crate) use attempt::{AttemptEnd, AttemptRun, AttemptStart, TracedStep};
pub(crate) use span::ClockAnchor;

use crate::metrics::Metrics;
use belljar_egress::exchange::Exchanger;
use belljar_egress::upstream::Upstream;
use span::Span;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The trace collector.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// Its address; the path of its URL is put before `path`.
    pub collector: Upstream,
    /// The path that spans are sent to.
    pub path: String,
    /// Headers of every request, such as one that authenticates the node.
    pub headers: Vec<(String, String)>,
    /// Maximum duration of a response.
    pub timeout: Duration,
}

/// The traces of a node.
pub(crate) struct Traces {
    /// `None` without a collector.
    exporting: Option<ExportTask>,
    metrics: Metrics,
    node: String,
}

struct ExportTask {
    /// `None` once the export is ended.
    spans: Mutex<Option<mpsc::Sender<Span>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Maximum number of spans that wait for the collector. Further ones are dropped and counted.
const MOST_WAITING: usize = 8_192;

/// Maximum number of model calls of one attempt that get spans.
pub(crate) const MOST_CALLS: usize = 1_000;

/// Maximum time for which waiting spans are sent when the node stops.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

// === impl Traces ===

impl Traces {
    /// Starts the exporter, in the current runtime.
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
            Ok(ExportTask { spans: Mutex::new(Some(spans)), task: Mutex::new(Some(task)) })
        });
        Ok(Self { exporting: exporting.transpose()?, metrics: metrics.clone(), node })
    }

    /// Returns true if there is a collector.
    pub(crate) fn are_wanted(&self) -> bool {
        self.exporting.is_some()
    }

    /// Queues an attempt's spans for the exporter; those that exceed the queue are dropped.
    pub(crate) fn tell(&self, noted: &AttemptStart, ran: Option<&AttemptRun>, ended: &AttemptEnd) {
        let Some(exporting) = &self.exporting else { return };
        let spans = attempt::spans(&self.node, noted, ran, ended);
        let sender = exporting.spans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let taken = |span| sender.as_ref().is_some_and(|sender| sender.try_send(span).is_ok());
        let dropped = spans.into_iter().map(taken).filter(|is_taken| !is_taken).count();
        self.metrics.spans_dropped(dropped);
    }

    /// Sends waiting spans, for at most [`LAST_PATIENCE`].
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
