//! Live events of a job: `GET /v1/worker/jobs/{job_id}/events`, as server-sent events.

use super::answer::Refusal;
use super::{SharedApi, job};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use belljar_contract::id::JobId;
use belljar_contract::worker::event::{JobEvent, JobEventKind};
use belljar_contract::worker::problem::ProblemKind;
use belljar_store::database::DatabaseError;
use futures_util::stream::{self, Stream, StreamExt};
use std::convert::Infallible;
use std::time::Duration;

/// Header with the id of the last event that a reconnecting client has.
const LAST_EVENT_ID: &str = "last-event-id";

const PORTION: u32 = 200;

/// Interval at which the database is polled for events of a job that another node runs.
const LOOK: Duration = Duration::from_secs(1);

/// Interval of keep-alive comments, so that neither the client nor a proxy closes an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A client's position in a job's events.
struct EventCursor {
    api: SharedApi,
    job_id: JobId,
    listener: crate::job::hub::Listener,
    last: u64,
    is_over: bool,
}

pub(super) async fn events(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let job_id = job::id(&name)?;
    let last = last_event_id(&headers, uri.query().unwrap_or_default())?;
    api.workplace.jobs.find(&job_id).await?.ok_or_else(|| job::unknown(&job_id))?;
    let listener = api.workplace.hub.listen(&job_id);
    let reading = EventCursor { api, job_id, listener, last, is_over: false };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(told(reading)).keep_alive(keep_alive).into_response())
}

/// Returns the id of the last event that the client has, from a header or the query; 0 without either.
fn last_event_id(headers: &HeaderMap, query: &str) -> Result<u64, Refusal> {
    let header = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?"));
    let mut after = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("after", id)) if after.is_none() => after = Some(id),
            _ => {
                let detail = format!("the parameter {pair}: expected `after=ID`, once");
                return Err(Refusal::new(ProblemKind::Validation, detail));
            }
        }
    }
    let Some(id) = header.or(after) else { return Ok(0) };
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    id.parse().ok().filter(|_| is_number).ok_or_else(|| {
        Refusal::new(ProblemKind::Validation, "the id of the last event: expected the number of an event")
    })
}

/// Streams each event once and in order; the stream ends with the job.
fn told(reading: EventCursor) -> impl Stream<Item = Result<Event, Infallible>> {
    let portions = stream::unfold(reading, |mut reading| async move {
        let portion = reading.next().await?;
        Some((portion, reading))
    });
    portions.flat_map(|portion| stream::iter(portion.into_iter().map(|event| Ok(written(&event)))))
}

fn written(event: &JobEvent) -> Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    Event::default().id(event.id.to_string()).event(event.happening.kind()).data(data)
}

// === impl EventCursor ===

impl EventCursor {
    /// Returns the next events; `None` when no more will follow.
    async fn next(&mut self) -> Option<Vec<JobEvent>> {
        while !self.is_over {
            match self.portion().await {
                Ok(events) if !events.is_empty() => return Some(events),
                Ok(_) => {}
                // The client reconnects, with the id of the last event that it has.
                Err(_) => return None,
            }
            let Self { api, listener, .. } = self;
            tokio::select! {
                () = listener.heard() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = api.stop.cancelled() => return None,
            }
        }
        None
    }

    async fn portion(&mut self) -> Result<Vec<JobEvent>, DatabaseError> {
        let events = self.api.workplace.jobs.events_after(&self.job_id, self.last, PORTION).await?;
        self.last = events.last().map_or(self.last, |event| event.id);
        self.is_over = events.iter().any(is_last);
        if events.is_empty() {
            // A client may ask for events after the last one.
            let job = self.api.workplace.jobs.find(&self.job_id).await?;
            self.is_over = job.is_none_or(|job| job.life.state.is_final() && self.last >= job.events);
        }
        Ok(events)
    }
}

fn is_last(event: &JobEvent) -> bool {
    matches!(event.happening, JobEventKind::Status { status, .. } if status.is_final())
}
