//! State of one run's web hatch: its policy, its limits and its denials.

use super::asked_names::RequestedNames;
use super::interception_ca::InterceptionCa;
use super::ledger::WebLedger;
use super::limits::WebLimits;
use super::live::LivePolicy;
use crate::audit_quota::AuditQuota;
use crate::credential::InjectedSecret;
use crate::identity::RunOwner;
use belljar_contract::egress::UNREACHED;
use belljar_contract::id::RunId;
use belljar_policy::egress::Destination;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One run, as its proxy sees it. The socket of a connection identifies the run.
pub struct WebRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Policy in force.
    pub policy: Arc<LivePolicy>,
    /// Size, rate and time limits.
    pub limits: WebLimits,
    /// Ledger for audit records.
    pub ledger: Arc<dyn WebLedger>,
    /// Task and job of the run.
    pub(super) owner: RunOwner,
    /// Certificate authority for TLS interception, if rules require it.
    pub(super) authority: Option<Arc<InterceptionCa>>,
    pub(super) asked_names: RequestedNames,
    /// Quota of audit records.
    pub(super) audit: AuditQuota,
    spent: ByteCounters,
    denials: Mutex<Denials>,
    /// Credentials that were injected so far. None may come back in an answer, whichever rule allows the request.
    filled_in: Mutex<Vec<Arc<InjectedSecret>>>,
}

/// Destinations that a run did not reach, for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Each destination once, in the order of the first requests.
    pub listed: Vec<Denial>,
    /// Number of further failed requests, to destinations that are not listed.
    pub unlisted: u64,
}

/// A destination that was denied or not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Destination of the request.
    pub destination: Destination,
    /// Stable code of the reason.
    pub reason: &'static str,
    /// The smallest rule that would allow it; `None` if no rule could.
    pub needed: Option<String>,
    /// Time of the latest failed request.
    pub last_at: Timestamp,
}

/// Bytes in both directions.
#[derive(Debug, Default)]
struct ByteCounters {
    sent: AtomicU64,
    received: AtomicU64,
}

/// Maximum number of listed destinations.
const MOST_LISTED: usize = 100;

/// Maximum number of injected values that answers are scanned for; the latest are kept. A credential may change while a run
/// goes on.
const MOST_FILLED_IN: usize = 64;

// === impl WebRun ===

impl WebRun {
    /// Creates a run that has reached nothing yet.
    pub fn new(
        run_id: RunId,
        policy: Arc<LivePolicy>,
        limits: WebLimits,
        ledger: Arc<dyn WebLedger>,
    ) -> Self {
        let (asked_names, spent, denials) =
            (RequestedNames::default(), ByteCounters::default(), Mutex::default());
        let audit = AuditQuota::new(limits.audit);
        let filled_in = Mutex::default();
        Self {
            run_id,
            policy,
            limits,
            ledger,
            owner: RunOwner::default(),
            authority: None,
            asked_names,
            audit,
            spent,
            denials,
            filled_in,
        }
    }

    /// Enables TLS interception by this authority, which the run trusts.
    #[must_use]
    pub fn inspecting_as(self, authority: Arc<InterceptionCa>) -> Self {
        Self { authority: Some(authority), ..self }
    }

    /// Sets the task and the job of the run.
    #[must_use]
    pub fn owned_by(self, owner: RunOwner) -> Self {
        Self { owner, ..self }
    }

    /// Writes the counted records as one. Called when the run has ended.
    pub fn flush_audit(&self) {
        if let Some(folded) = self.audit.flush(&self.run_id) {
            self.ledger.record_folded(folded);
        }
    }

    /// Returns the denials so far.
    pub fn denials(&self) -> Denials {
        self.locked().clone()
    }

    /// Notes a destination that was not reached. It is listed once, with its first reason; a denial replaces a reason that may
    /// be temporary.
    pub(super) fn keep_out(&self, denial: Denial) {
        let mut denials = self.locked();
        let is_full = denials.listed.len() >= MOST_LISTED;
        let known = denials.listed.iter_mut().find(|known| known.destination == denial.destination);
        match known {
            Some(known) => {
                let last_at = known.last_at.max(denial.last_at);
                if known.is_unreached() && !denial.is_unreached() {
                    *known = denial;
                }
                known.last_at = last_at;
            }
            None if is_full => denials.unlisted += 1,
            None => denials.listed.push(denial),
        }
    }

    /// Notes that a destination was reached. An earlier entry that it was unreachable is removed.
    pub(super) fn reached(&self, destination: &Destination) {
        let is_over = |denial: &Denial| denial.is_unreached() && denial.destination == *destination;
        self.locked().listed.retain(|denial| !is_over(denial));
    }

    /// Notes an injected credential.
    pub(super) fn fill_in(&self, injected: &Arc<InjectedSecret>) {
        let mut all = self.filled_in.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.secret.expose() != injected.secret.expose());
        let surplus = (all.len() + 1).saturating_sub(MOST_FILLED_IN);
        all.drain(..surplus);
        all.push(Arc::clone(injected));
    }

    /// Returns the credentials that were injected so far.
    pub(super) fn filled_in(&self) -> Vec<Arc<InjectedSecret>> {
        self.filled_in.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts sent bytes. Returns true while the limit is not exceeded.
    pub(crate) fn may_send(&self, bytes: u64) -> bool {
        self.spent.sent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    /// Counts received bytes. Returns true while the limit is not exceeded.
    pub(crate) fn may_receive(&self, bytes: u64) -> bool {
        self.spent.received.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    fn locked(&self) -> MutexGuard<'_, Denials> {
        // No panic can leave the value half changed.
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Denial ===

impl Denial {
    /// Returns true if the rules allow the destination and it was not reached.
    fn is_unreached(&self) -> bool {
        UNREACHED.contains(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::ledger::WriteConfirmation;
    use crate::secret::Secret;
    use belljar_contract::egress::{ProxiedRequestRecord, ProxiedRequestStartRecord};

    struct NullLedger;

    impl WebLedger for NullLedger {
        fn begin(&self, _: ProxiedRequestStartRecord) -> WriteConfirmation {
            Box::pin(async { true })
        }

        fn record(&self, _: ProxiedRequestRecord) {}

        fn is_sound(&self) -> bool {
            true
        }
    }

    fn run() -> WebRun {
        let run_id = RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap();
        let policy = LivePolicy::new(belljar_policy::egress::EgressPolicy::default());
        WebRun::new(run_id, Arc::new(policy), WebLimits::default(), Arc::new(NullLedger))
    }

    #[test]
    fn reached_destination_leaves_the_denials_and_a_denied_one_stays() {
        let run = run();
        let keep_out = |port, reason, second| {
            let host = belljar_policy::egress::Host::parse("a.example").unwrap();
            let last_at = Timestamp::from_second(second).unwrap();
            let destination = Destination { host, port };
            run.keep_out(Denial { destination: destination.clone(), reason, needed: None, last_at });
            destination
        };
        let listed = || {
            let of = |denial: Denial| (denial.destination.port, denial.reason, denial.last_at.as_second());
            run.denials().listed.into_iter().map(of).collect::<Vec<_>>()
        };
        keep_out(1, "unreachable", 10);
        let denied = keep_out(2, "no_such_host", 11);
        keep_out(2, "no_rules", 12);
        keep_out(2, "unreachable", 13);
        assert_eq!(listed(), [(1, "unreachable", 10), (2, "no_rules", 13)]);
        run.reached(&keep_out(1, "unreachable", 14));
        run.reached(&denied);
        assert_eq!(listed(), [(2, "no_rules", 13)]);
    }

    #[test]
    fn latest_injected_secrets_are_remembered_once_each() {
        let run = run();
        let fill_in = |text: String| run.fill_in(&Arc::new(InjectedSecret::of(Secret::parse(text).unwrap())));
        assert!(run.filled_in().is_empty());
        for _ in 0..2 {
            (0..MOST_FILLED_IN).for_each(|at| fill_in(format!("secret-{at:04}")));
        }
        assert_eq!(run.filled_in().len(), MOST_FILLED_IN);
        fill_in("another-one".to_owned());
        let known = run.filled_in();
        let is_known = |text: &[u8]| known.iter().any(|known| known.secret.expose() == text);
        assert_eq!(known.len(), MOST_FILLED_IN);
        assert!(is_known(b"another-one") && is_known(b"secret-0001") && !is_known(b"secret-0000"));
    }
}
