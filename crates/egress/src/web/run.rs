//! What one run may reach, and what it was denied.

use super::asked_names::AskedNames;
use super::authority::Authority;
use super::ledger::WebLedger;
use super::limits::WebLimits;
use super::live::LivePolicy;
use crate::audit_quota::AuditQuota;
use crate::credential::Injected;
use belljar_contract::id::RunId;
use belljar_policy::egress::{Denied, Destination};
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

/// What was denied to a run, for whoever tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Each destination once, in the order in which they were asked for.
    pub listed: Vec<Denial>,
    /// How many more there were.
    pub unlisted: u64,
}

/// Something that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Where somebody wanted to get to.
    pub destination: Destination,
    /// Why not: a stable code.
    pub reason: &'static str,
    /// The smallest rule that would allow it; nothing where no rule would.
    pub needed: Option<String>,
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

    pub(crate) fn deny(&self, denied: &Denied) {
        let mut denials = self.locked();
        if denials.listed.iter().any(|denial| denial.destination == denied.destination) {
            return;
        }
        if denials.listed.len() >= MOST_LISTED {
            denials.unlisted += 1;
            return;
        }
        let needed = denied.needed().map(str::to_owned);
        let (destination, reason) = (denied.destination.clone(), denied.reason.code());
        denials.listed.push(Denial { destination, reason, needed });
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

    #[test]
    fn latest_values_that_were_filled_in_are_known_each_once() {
        let run_id = RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap();
        let policy = LivePolicy::new(belljar_policy::egress::EgressPolicy::default());
        let run = WebRun::new(run_id, Arc::new(policy), WebLimits::default(), Arc::new(Nothing));
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
