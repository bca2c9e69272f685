//! A span: something that began and ended, below something else.

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
    /// Whether it is a call of somebody else.
    pub(super) is_call: bool,
    /// Nanoseconds since 1970.
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
}

/// One moment by two clocks: the one that tells the time of day, and the one that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anchor {
    at: Timestamp,
    instant: Instant,
}

/// An id that nobody else has.
pub(super) fn new_id() -> [u8; 8] {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    random.to_be_bytes()
}

/// The trace of a job: its id.
pub(super) fn trace_of(job_id: &str) -> [u8; 16] {
    Uuid::parse_str(job_id).map_or([1; 16], Uuid::into_bytes)
}

/// The first span of a job, which whoever makes another attempt knows as well.
pub(super) fn root_of(job_id: &str) -> [u8; 8] {
    let digest = Sha256::digest(trace_of(job_id));
    let mut id = [0; 8];
    id.copy_from_slice(&digest[..8]);
    id
}

pub(super) fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or(0)
}

// === impl Anchor ===

impl Anchor {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self { at, instant: Instant::now() }
    }

    /// What time it was then, however the clock has been set meanwhile.
    pub(super) fn time(&self, of: Instant) -> u64 {
        let at = nanoseconds(self.at);
        let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        match of.checked_duration_since(self.instant) {
            Some(since) => at.saturating_add(nanos(since)),
            None => at.saturating_sub(nanos(self.instant.duration_since(of))),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
