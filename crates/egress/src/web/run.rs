//! What one run may reach, and what it was denied.

use super::asked_names::AskedNames;
use super::authority::Authority;
use super::ledger::WebLedger;
use super::limits::WebLimits;
use super::live::LivePolicy;
use crate::audit_quota::AuditQuota;
use crate::credential::Injected;
use crate::identity::RunOwner;
use belljar_contract::egress::UNREACHED;
use belljar_contract::id::RunId;
use belljar_policy::egress::Destination;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run, as its proxy knows it. Which run asks is known by the socket that it comes in by.
pub struct WebRun {
    /// Which.
    pub run_id: RunId,
    /// What it may reach.
    pub policy: Arc<LivePolicy>,
    /// How much, and for how long.
    pub limits: WebLimits,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
    /// For which task and job it is.
    pub(super) owner: RunOwner,
    /// Who shows itself to the run for others, where rules have connections looked into.
    pub(super) authority: Option<Arc<Authority>>,
    pub(super) asked_names: AskedNames,
    /// How much is recorded of it.
    pub(super) audit: AuditQuota,
    spent: Spent,
    denials: Mutex<Denials>,
    /// What rules have filled in for it so far: none of that may come back, by whichever rule it is asked for.
    filled_in: Mutex<Vec<Arc<Injected>>>,
}

/// What a run wanted and did not get, for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Each destination once, in the order in which they were asked for.
    pub listed: Vec<Denial>,
    /// How many more there were.
    pub unlisted: u64,
}

/// A destination that was denied or not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Where somebody wanted to get to.
    pub destination: Destination,
    /// Why not: a stable code.
    pub reason: &'static str,
    /// The smallest rule that would allow it; nothing where no rule would.
    pub needed: Option<String>,
    /// When it was asked for in vain for the last time.
    pub last_at: Timestamp,
}

/// Bytes, both ways.
#[derive(Debug, Default)]
struct Spent {
    sent: AtomicU64,
    received: AtomicU64,
}

/// So many destinations are listed.
const MOST_LISTED: usize = 100;

/// So many values that were filled in are looked for, the latest ones: a credential may change while a run goes on.
const MOST_FILLED_IN: usize = 64;

// === impl WebRun ===

impl WebRun {
    /// A run that has reached nothing yet.
    pub fn new(
        run_id: RunId,
        policy: Arc<LivePolicy>,
        limits: WebLimits,
        ledger: Arc<dyn WebLedger>,
    ) -> Self {
        let (asked_names, spent, denials) = (AskedNames::default(), Spent::default(), Mutex::default());
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

    /// Has connections looked into, where rules want it, as this authority: the run trusts it.
    #[must_use]
    pub fn inspecting_as(self, authority: Arc<Authority>) -> Self {
        Self { authority: Some(authority), ..self }
    }

    /// Says for which task and job it is.
    #[must_use]
    pub fn owned_by(self, owner: RunOwner) -> Self {
        Self { owner, ..self }
    }

    /// Has records that were only counted so far written as one. Called when the run has ended.
    pub fn flush_audit(&self) {
        if let Some(folded) = self.audit.flush(&self.run_id) {
            self.ledger.record_folded(folded);
        }
    }

    /// What it was denied so far.
    pub fn denials(&self) -> Denials {
        self.locked().clone()
    }

    /// Notes what it wanted and did not get. A destination is listed once, with its first reason; a denial goes before a reason that
    /// may be over in a moment.
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

    /// Notes that it has reached a destination: that it could not a moment ago is over.
    pub(super) fn reached(&self, destination: &Destination) {
        let is_over = |denial: &Denial| denial.is_unreached() && denial.destination == *destination;
        self.locked().listed.retain(|denial| !is_over(denial));
    }

    /// Notes what is filled in for it.
    pub(super) fn fill_in(&self, injected: &Arc<Injected>) {
        let mut all = self.filled_in.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.secret.expose() != injected.secret.expose());
        let surplus = (all.len() + 1).saturating_sub(MOST_FILLED_IN);
        all.drain(..surplus);
        all.push(Arc::clone(injected));
    }

    /// What was filled in for it so far.
    pub(super) fn filled_in(&self) -> Vec<Arc<Injected>> {
        self.filled_in.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts bytes; whether there may be more.
    pub(crate) fn may_send(&self, bytes: u64) -> bool {
        self.spent.sent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    /// The same the other way.
    pub(crate) fn may_receive(&self, bytes: u64) -> bool {
        self.spent.received.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    fn locked(&self) -> MutexGuard<'_, Denials> {
        // Nothing in there is ever half done.
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Denial ===

impl Denial {
    /// Whether the rules allow it, and it was not reached.
    fn is_unreached(&self) -> bool {
        UNREACHED.contains(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::ledger::Written;
    use crate::secret::Secret;
    use belljar_contract::egress::{PassageBegun, PassageRecord};

    struct Nothing;

    impl WebLedger for Nothing {
        fn begin(&self, _: PassageBegun) -> Written {
            Box::pin(async { true })
        }

        fn record(&self, _: PassageRecord) {}

        fn is_sound(&self) -> bool {
            true
        }
    }

    fn run() -> WebRun {
        let run_id = RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap();
        let policy = LivePolicy::new(belljar_policy::egress::EgressPolicy::default());
        WebRun::new(run_id, Arc::new(policy), WebLimits::default(), Arc::new(Nothing))
    }

    #[test]
    fn destination_that_is_reached_after_all_is_listed_no_more_and_a_denied_one_is() {
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
    fn latest_values_that_were_filled_in_are_known_each_once() {
        let run = run();
        let fill_in = |text: String| run.fill_in(&Arc::new(Injected::of(Secret::parse(text).unwrap())));
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
