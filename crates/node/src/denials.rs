//! What the Worker API has denied, in the audit: one record each, without waiting for the disk. Somebody who asks in vain
//! again and again does not fill it: what is over a bound in a second is counted, and told with the next record.

use belljar_contract::inference::Excerpt;
use belljar_contract::worker::problem::ProblemKind;
use belljar_store::audit::{AuditLog, Event};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Writes them down.
pub(crate) struct Denials {
    audit: Arc<AuditLog>,
    window: Mutex<Window>,
}

/// Why a request was denied.
#[derive(Debug, Clone)]
pub(crate) struct Denied {
    pub(crate) kind: ProblemKind,
    pub(crate) detail: String,
}

struct Window {
    began: Instant,
    recorded: u32,
    unrecorded: u64,
}

#[derive(Serialize)]
struct Record {
    reason: ProblemKind,
    detail: Excerpt,
    method: Excerpt,
    path: Excerpt,
    /// So many more were denied before this one, and are not recorded.
    unrecorded: u64,
}

/// The kind under which they stand in the audit.
const DENIED: &str = "request_denied";

const MOST_IN_A_WINDOW: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);

// === impl Denials ===

impl Denials {
    pub(crate) fn new(audit: Arc<AuditLog>) -> Self {
        let window = Window { began: Instant::now(), recorded: 0, unrecorded: 0 };
        Self { audit, window: Mutex::new(window) }
    }

    /// Writes one down.
    pub(crate) fn note(&self, denied: &Denied, method: &str, path: &str) {
        let Some(unrecorded) = self.window.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let record = Record {
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

// === impl Denied ===

impl Denied {
    /// The kinds of problems that are denials: the request could be understood, and was not allowed.
    pub(crate) fn is_denial(kind: ProblemKind) -> bool {
        matches!(kind, ProblemKind::Authentication | ProblemKind::Authorization)
    }
}

// === impl Window ===

impl Window {
    /// How many were left out before the one that may be recorded now; nothing if it is to be left out, too.
    fn take(&mut self) -> Option<u64> {
        if self.began.elapsed() >= WINDOW {
            (self.began, self.recorded) = (Instant::now(), 0);
        }
        if self.recorded >= MOST_IN_A_WINDOW {
            self.unrecorded += 1;
            return None;
        }
        self.recorded += 1;
        Some(std::mem::take(&mut self.unrecorded))
    }
}
