//! Events of a job, as the node reports them: each event once and in order, also if the connection breaks.
//!
//! ```text
//! connect behind the last event ─► events … ─┬─► the one that the job ends with ─► over
//!        ▲                                   ├─► silence, where only what there is by now is wanted ─► left
//!        └────────── a pause ◄───────────────┴─► the connection breaks, or the node stops
//! ```

use super::{BodyRead, Client, ClientError, NodeRequest, NodeResponse};
use crate::error::CliError;
use belljar_contract::id::JobId;
use belljar_contract::worker::event::{JobEvent, JobEventKind};
use belljar_contract::worker::state::JobState;
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Receiver of a job's events.
pub(crate) trait JobEventReceiver {
    /// Handles an event: its document as received, and its parsed form if it could be parsed.
    fn heard(&mut self, document: &Value, event: Option<&JobEvent>) -> Result<(), CliError>;

    /// Called several times a second. Returns true to stop following.
    fn has_enough(&mut self) -> Result<bool, CliError> {
        Ok(false)
    }

    /// Called after the connection is lost, before a retry.
    fn lost(&mut self, error: Option<&ClientError>);
}

/// Range of a job's events to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowExtent {
    /// All events up to the job's end.
    Whole,
    /// Events that exist now.
    SoFar,
}

/// Result of following a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowResult {
    /// The job is over.
    Over,
    /// The job still runs, as far as is known.
    Left,
}

/// Result of one connection.
#[derive(Debug, PartialEq, Eq)]
enum ConnectionResult {
    Over,
    Left,
    /// The connection ended before the job did.
    Ended,
}

/// Position of a follower in a job's events.
#[derive(Debug, Default)]
struct EventPosition {
    /// Number of the last event received.
    last: u64,
    /// Whether the node has told any, or was about to: then it is worth waiting for.
    has_begun: bool,
}

/// Parser state of an event stream.
#[derive(Debug, Default)]
struct EventStreamParser {
    pending: Vec<u8>,
    data: String,
}

const TICK: Duration = Duration::from_millis(100);

/// Silence after which a node has sent all existing events: it sends them immediately.
const QUIET: Duration = Duration::from_secs(1);

/// Backoff between two connection attempts: first and longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum time to wait for an unreachable node.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Maximum size of an event, in bytes.
const LARGEST_EVENT_BYTES: usize = 16 << 20;

/// Follows a job from its first event on.
pub(crate) fn follow(
    client: &Client,
    job: &JobId,
    extent: FollowExtent,
    follower: &mut dyn JobEventReceiver,
) -> Result<FollowResult, CliError> {
    let mut position = EventPosition::default();
    let mut pause = FIRST_PAUSE;
    let mut heard_at: Option<Instant> = None;
    loop {
        let before = position.last;
        let error = match pass(client, job, extent, &mut position, follower) {
            Ok(ConnectionResult::Over) => return Ok(FollowResult::Over),
            Ok(ConnectionResult::Left) => return Ok(FollowResult::Left),
            // A finished job has no events after its last one: the node ends the response without any.
            Ok(ConnectionResult::Ended) if position.last == before && is_over(client, job) => {
                return Ok(FollowResult::Over);
            }
            Ok(ConnectionResult::Ended) => None,
            Err(CliError::Node(error)) if error.may_pass() && position.has_begun => Some(error),
            Err(error) => return Err(error),
        };
        if position.last > before || heard_at.is_none() {
            (heard_at, pause) = (Some(Instant::now()), FIRST_PAUSE);
        }
        match error {
            Some(error) if heard_at.is_some_and(|at| at.elapsed() > LONGEST_ABSENCE) => {
                return Err(error.into());
            }
            error => follower.lost(error.as_ref()),
        }
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if follower.has_enough()? {
                return Ok(FollowResult::Left);
            }
            std::thread::sleep(TICK);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn is_over(client: &Client, job: &JobId) -> bool {
    client.job(job).is_ok_and(|told| told.known.job.status.is_final())
}

fn pass(
    client: &Client,
    job: &JobId,
    extent: FollowExtent,
    position: &mut EventPosition,
    follower: &mut dyn JobEventReceiver,
) -> Result<ConnectionResult, CliError> {
    let path = format!("/jobs/{job}/events");
    let headers = [("last-event-id", position.last.to_string())];
    let mut answer: NodeResponse =
        client.ask(&NodeRequest { path: &path, headers: &headers, ..NodeRequest::default() })?;
    position.has_begun = true;
    let (mut lines, mut heard_at) = (EventStreamParser::default(), Instant::now());
    loop {
        if follower.has_enough()? {
            return Ok(ConnectionResult::Left);
        }
        match answer.next(TICK)? {
            BodyRead::End => return Ok(ConnectionResult::Ended),
            BodyRead::Nothing if extent == FollowExtent::SoFar && heard_at.elapsed() >= QUIET => {
                return Ok(ConnectionResult::Left);
            }
            BodyRead::Nothing => continue,
            BodyRead::Bytes(bytes) => lines.pending.extend(bytes),
        }
        heard_at = Instant::now();
        while let Some(document) = lines.next(client.node())? {
            let id = document["id"].as_u64().unwrap_or_default();
            // After a reconnect, the node may send events again.
            if id <= position.last {
                continue;
            }
            position.last = id;
            let event = JobEvent::deserialize(&document).ok();
            follower.heard(&document, event.as_ref())?;
            if event.as_ref().and_then(final_state).is_some() {
                return Ok(ConnectionResult::Over);
            }
        }
    }
}

/// The state that a job has ended with by that event.
pub(crate) fn final_state(event: &JobEvent) -> Option<JobState> {
    match event.happening {
        JobEventKind::Status { status, .. } if status.is_final() => Some(status),
        _ => None,
    }
}

// === impl EventStreamParser ===

impl EventStreamParser {
    /// The next event that is complete.
    fn next(&mut self, node: &str) -> Result<Option<Value>, ClientError> {
        let node = || node.to_owned();
        let mut begun = 0;
        while let Some(length) =
            self.pending.get(begun..).and_then(|rest| rest.iter().position(|b| *b == b'\n'))
        {
            let line = String::from_utf8_lossy(self.pending.get(begun..begun + length).unwrap_or_default());
            let line = line.trim_end_matches('\r');
            begun += length + 1;
            if let Some(data) = line.strip_prefix("data:") {
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
                self.data.push('\n');
            }
            if line.is_empty() && !self.data.is_empty() {
                let data = std::mem::take(&mut self.data);
                self.pending.drain(..begun);
                let document = serde_json::from_str(&data);
                return document.map(Some).map_err(|source| ClientError::Document { node: node(), source });
            }
        }
        self.pending.drain(..begun);
        match self.pending.len() + self.data.len() > LARGEST_EVENT_BYTES {
            true => Err(ClientError::TooLarge { node: node() }),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Vec<Value> {
        let (mut lines, mut events) = (EventStreamParser::default(), Vec::new());
        for piece in bytes.chunks(piece) {
            lines.pending.extend(piece);
            while let Some(event) = lines.next("node").unwrap() {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn event_stream_is_parsed_at_every_chunk_size() {
        let stream = b":\n\nid: 1\nevent: log\ndata: {\"id\":1}\n\n: alive\n\r\ndata:{\ndata: \"id\":2}\r\n\r\ndata: {\"id\":3}\n";
        for piece in 1..=stream.len() {
            // The last has not ended.
            let ids: Vec<_> = read(stream, piece).iter().map(|event| event["id"].clone()).collect();
            assert_eq!(ids, [1, 2], "in pieces of {piece}");
        }
    }

    #[test]
    fn malformed_or_oversized_event_is_an_error() {
        let mut lines =
            EventStreamParser { pending: b"data: {\n\n".to_vec(), ..EventStreamParser::default() };
        assert!(matches!(lines.next("node"), Err(ClientError::Document { .. })));
        let mut lines =
            EventStreamParser { pending: vec![b'x'; LARGEST_EVENT_BYTES], ..EventStreamParser::default() };
        assert!(lines.next("node").unwrap().is_none());
        lines.pending.push(b'x');
        assert!(matches!(lines.next("node"), Err(ClientError::TooLarge { .. })));
    }
}
