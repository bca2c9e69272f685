//! Exports spans in batches, with retries.

use super::span::Span;
use super::{TraceSettings, otlp};
use crate::metrics::Metrics;
use belljar_egress::exchange::{Exchanger, OutgoingRequest};
use std::borrow::Cow;
use std::time::Duration;
use tokio::sync::mpsc;

/// The exporter.
pub(super) struct Exporter {
    pub(super) settings: TraceSettings,
    pub(super) exchanger: Exchanger,
    pub(super) metrics: Metrics,
    pub(super) node: String,
}

/// Result of a request.
enum ExportResult {
    Taken,
    /// It may be accepted later; the duration is the collector's `retry-after`.
    Later(Option<Duration>),
    Refused,
}

/// Maximum number of spans per request.
const MOST_AT_ONCE: usize = 512;

/// Maximum time for which the first span waits for others.
const GATHERING: Duration = Duration::from_millis(500);

/// Maximum number of attempts for a request; the backoff between them doubles.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Maximum size of a collector's response, in bytes; its content is ignored.
const LARGEST_ANSWER: usize = 64 << 10;

const WANTED: [&str; 1] = ["retry-after"];

// === impl Exporter ===

impl Exporter {
    /// Sends spans until the queue is closed.
    pub(super) async fn run(self, mut waiting: mpsc::Receiver<Span>) {
        while let Some(first) = waiting.recv().await {
            let mut spans = vec![first];
            let gathering = tokio::time::timeout(GATHERING, async {
                while spans.len() < MOST_AT_ONCE {
                    let Some(span) = waiting.recv().await else { return };
                    spans.push(span);
                }
            });
            let _ = gathering.await;
            match self.send(&spans).await {
                true => self.metrics.spans_exported(spans.len()),
                false => self.metrics.spans_dropped(spans.len()),
            }
        }
    }

    /// Returns true if the spans were accepted.
    async fn send(&self, spans: &[Span]) -> bool {
        let document = otlp::document(&self.node, spans);
        let mut pause = FIRST_PAUSE;
        for left in (0..TRIES).rev() {
            match self.try_send(document.clone()).await {
                ExportResult::Taken => return true,
                ExportResult::Refused => return false,
                ExportResult::Later(_) if left == 0 => return false,
                ExportResult::Later(told) => {
                    tokio::time::sleep(told.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                }
            }
            pause *= 2;
        }
        false
    }

    async fn try_send(&self, body: Vec<u8>) -> ExportResult {
        let given = self.settings.headers.iter();
        let mut headers: Vec<(Cow<'static, str>, String)> =
            given.map(|(name, value)| (Cow::Owned(name.clone()), value.clone())).collect();
        headers.push((Cow::Borrowed("content-type"), otlp::CONTENT_TYPE.to_owned()));
        let outgoing = OutgoingRequest {
            method: "POST",
            target: self.settings.path.clone(),
            headers,
            body,
            largest_answer: LARGEST_ANSWER,
            patience: self.settings.timeout,
        };
        match self.exchanger.ask(&self.settings.collector, outgoing, &WANTED).await {
            Ok(answer) => match answer.status {
                200..=299 => ExportResult::Taken,
                429 | 502..=504 => {
                    let seconds = answer.headers.first().and_then(|(_, value)| value.trim().parse().ok());
                    ExportResult::Later(seconds.map(Duration::from_secs))
                }
                status => {
                    tracing::warn!(status, "traces are refused by their collector");
                    ExportResult::Refused
                }
            },
            Err(error) => {
                tracing::warn!(error = crate::chain(&error), "traces don't arrive");
                ExportResult::Later(None)
            }
        }
    }
}
