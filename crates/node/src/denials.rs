//! Denials of the Worker API, in the audit log: one record each, without waiting for the disk. A client without a token must
//! not be able to fill the disk with denied requests. So denials are rate limited by the second and by the hour, and equal ones
//! are folded. The next record states the number of denials that were not recorded.

use belljar_contract::inference::Excerpt;
use belljar_contract::worker::problem::ProblemKind;
use belljar_store::audit::{AuditLog, Event};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Records denials.
pub(crate) struct Denials {
    audit: Arc<AuditLog>,
    /// A quota of its own, so that clients without a token can't use up the one for denials of authenticated callers.
    unauthenticated: Mutex<DenialRateLimit>,
    others: Mutex<DenialRateLimit>,
}

/// Why a request was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DenialReason {
    pub(crate) kind: ProblemKind,
    pub(crate) detail: String,
}

/// Rate limit of denial records.
#[derive(Default)]
struct DenialRateLimit {
    second: RateWindow,
    hour: RateWindow,
    /// The last denial, and the number of equal ones in a row.
    last: Option<DeniedRequest>,
    repeated: u64,
    unrecorded: u64,
}

/// Records written in the current time window.
#[derive(Default)]
struct RateWindow {
    began: Option<Instant>,
    recorded: u32,
}

/// Fields by which denials are compared.
#[derive(Debug, PartialEq, Eq)]
struct DeniedRequest {
    denied: DenialReason,
    method: String,
    path: String,
}

#[derive(Serialize)]
struct DenialRecord {
    reason: ProblemKind,
    detail: Excerpt,
    method: Excerpt,
    path: Excerpt,
    /// Number of denials before this one that were not recorded.
    unrecorded: u64,
}

/// Kind of the audit records.
const DENIED: &str = "request_denied";

/// Number of equal denials in a row that are recorded one by one; of further ones only those whose number is a power of two.
const MOST_EQUAL: u64 = 100;

/// Maximum number of records per second, while there are fewer than [`MANY`] in the hour.
const MOST_IN_A_SECOND: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Number of records in an hour from which on at most one per [`SLOW`] is written.
const MANY: u32 = 1_000;
const SLOW: Duration = Duration::from_secs(10);

/// Maximum number of records per hour.
const MOST_IN_AN_HOUR: u32 = 1_200;
const HOUR: Duration = Duration::from_secs(3_600);

// === impl Denials ===

impl Denials {
    pub(crate) fn new(audit: Arc<AuditLog>) -> Self {
        Self { audit, unauthenticated: Mutex::default(), others: Mutex::default() }
    }

    fn quota(&self, kind: ProblemKind) -> MutexGuard<'_, DenialRateLimit> {
        let quota = if kind == ProblemKind::Authentication { &self.unauthenticated } else { &self.others };
        quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a denial, if the rate limit permits.
    pub(crate) fn note(&self, denied: &DenialReason, method: &str, path: &str) {
        let request =
            DeniedRequest { denied: denied.clone(), method: method.to_owned(), path: path.to_owned() };
        let Some(unrecorded) = self.quota(denied.kind).take(request, Instant::now()) else {
            return;
        };
        let record = DenialRecord {
            reason: denied.kind,
            detail: Excerpt::of(&denied.detail),
            method: Excerpt::of(method),
            path: Excerpt::of(path),
            unrecorded,
        };
        match Event::new(DENIED, None, &record) {
            Ok(event) => self.audit.submit(event, |written| {
                if let Err(error) = written {
                    tracing::warn!(error = crate::chain(&error), "a denial is not recorded");
                }
            }),
            Err(error) => tracing::warn!(error = crate::chain(&error), "a denial is not recorded"),
        }
    }
}

// === impl DenialReason ===

impl DenialReason {
    /// Returns true for the problem kinds that are denials: the request was understood, but not allowed.
    pub(crate) fn is_denial(kind: ProblemKind) -> bool {
        matches!(kind, ProblemKind::Authentication | ProblemKind::Authorization)
    }
}

// === impl DenialRateLimit ===

impl DenialRateLimit {
    /// Number of denials skipped before the one that may be recorded now; `None` if this one is to be skipped, too.
    fn take(&mut self, request: DeniedRequest, now: Instant) -> Option<u64> {
        let is_wanted = self.is_wanted(request);
        if !(is_wanted && self.has_room(now)) {
            self.unrecorded += 1;
            return None;
        }
        self.second.recorded += 1;
        self.hour.recorded += 1;
        Some(std::mem::take(&mut self.unrecorded))
    }

    /// Returns false for one of many equal denials in a row.
    fn is_wanted(&mut self, request: DeniedRequest) -> bool {
        match self.last.as_ref() == Some(&request) {
            true => self.repeated += 1,
            false => (self.last, self.repeated) = (Some(request), 1),
        }
        self.repeated <= MOST_EQUAL || self.repeated.is_power_of_two()
    }

    fn has_room(&mut self, now: Instant) -> bool {
        self.hour.renew(HOUR, now);
        let (most, span) = match self.hour.recorded {
            ..MANY => (MOST_IN_A_SECOND, SECOND),
            _ => (1, SLOW),
        };
        self.second.renew(span, now);
        self.second.recorded < most && self.hour.recorded < MOST_IN_AN_HOUR
    }
}

// === impl RateWindow ===

impl RateWindow {
    /// Begins anew if the window is at least `span` old.
    fn renew(&mut self, span: Duration, now: Instant) {
        if self.began.is_none_or(|began| now.duration_since(began) >= span) {
            *self = Self { began: Some(now), recorded: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of recorded denials, and number of denials accounted for in them, of `number` denials with one per interval.
    fn recorded(number: u32, every: Duration, path: fn(u32) -> String) -> (u32, u64) {
        let (mut quota, begun) = (DenialRateLimit::default(), Instant::now());
        let denied = DenialReason { kind: ProblemKind::Authentication, detail: "no token".to_owned() };
        let taken = (0..number).filter_map(|at| {
            let request = DeniedRequest { denied: denied.clone(), method: "GET".to_owned(), path: path(at) };
            quota.take(request, begun + every * at)
        });
        taken.fold((0, 0), |(records, counted), unrecorded| (records + 1, counted + unrecorded))
    }

    #[test]
    fn denial_flood_is_rate_limited_per_hour_and_counted() {
        // Fifty a second for just under two hours, each for another path.
        let (records, counted) = recorded(359_999, Duration::from_millis(20), |at| format!("/{at}"));
        assert_eq!(records, 2 * MOST_IN_AN_HOUR);
        assert!(counted > 170_000, "{counted}");
        // Control: what an honest client is denied is recorded one by one, for hours.
        assert_eq!(recorded(1_000, Duration::from_secs(10), |at| format!("/{}", at % 3)), (1_000, 0));
    }

    #[test]
    fn equal_denials_are_folded() {
        let (records, counted) = recorded(10_000, Duration::from_secs(1), |_| "/v1/worker/jobs".to_owned());
        // The hundred, and the 128th, 256th and so on to the 8192nd.
        assert_eq!((records, counted), (107, 8_192 - 107));
        let (records, _) = recorded(1_000, Duration::from_secs(1), |at| format!("/{at}"));
        assert_eq!(records, 1_000);
    }
}
