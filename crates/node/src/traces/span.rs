//! A span: an operation with a begin and an end.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::time::Instant;
use uuid::Uuid;

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: Cow<'static, str>,
    /// True for a call to another service.
    pub(super) is_call: bool,
    /// Begin and end, in nanoseconds since 1970.
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) attributes: Vec<(&'static str, AttributeValue)>,
    /// Failure code, if it failed.
    pub(super) failure: Option<String>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AttributeValue {
    Text(String),
    Number(i64),
}

/// A moment by two clocks: the wall clock and the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockAnchor {
    at: Timestamp,
    instant: Instant,
}

/// Returns a random span id.
pub(super) fn new_id() -> [u8; 8] {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    random.to_be_bytes()
}

/// Returns the trace id of a job: the job's id.
pub(super) fn trace_of(job_id: &str) -> [u8; 16] {
    Uuid::parse_str(job_id).map_or([1; 16], Uuid::into_bytes)
}

/// Returns the id of a job's root span, which is derived from the job's id, so that every attempt computes the same.
pub(super) fn root_of(job_id: &str) -> [u8; 8] {
    let digest = Sha256::digest(trace_of(job_id));
    let mut id = [0; 8];
    id.copy_from_slice(&digest[..8]);
    id
}

pub(super) fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or(0)
}

// === impl ClockAnchor ===

impl ClockAnchor {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self { at, instant: Instant::now() }
    }

    /// Returns the wall-clock time of an instant, unaffected by later clock changes.
    pub(super) fn time(&self, of: Instant) -> u64 {
        let at = nanoseconds(self.at);
        let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        match of.checked_duration_since(self.instant) {
            Some(since) => at.saturating_add(nanos(since)),
            None => at.saturating_sub(nanos(self.instant.duration_since(of))),
        }
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
