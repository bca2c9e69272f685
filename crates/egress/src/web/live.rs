//! Policy in force. It may be replaced while tunnels are open: tunnels that the new policy denies are closed.

use super::config::WebConfig;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// Policy in force, with its replacements.
#[derive(Debug)]
pub struct LivePolicy {
    current: watch::Sender<Arc<LivePolicyVersion>>,
    /// Policies that are derived from it.
    derived: Mutex<Vec<DerivedPolicy>>,
}

/// Function that derives a policy from another one.
type PolicyDerivation = Arc<dyn Fn(WebConfig) -> WebConfig + Send + Sync>;

/// Derived policy. It is updated for as long as something holds it.
struct DerivedPolicy {
    policy: Weak<LivePolicy>,
    change: PolicyDerivation,
}

/// One version of the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct LivePolicyVersion {
    /// Version number, from 1.
    pub number: u64,
    /// Configuration of this version.
    pub config: WebConfig,
}

// === impl LivePolicy ===

impl LivePolicy {
    /// Creates the first version.
    pub fn new(config: impl Into<WebConfig>) -> Self {
        Self::of(LivePolicyVersion { number: 1, config: config.into() })
    }

    fn of(first: LivePolicyVersion) -> Self {
        let (current, _) = watch::channel(Arc::new(first));
        Self { current, derived: Mutex::default() }
    }

    /// Returns a policy that is always derived from this one and has its version numbers. It is replaced together with this
    /// one.
    #[must_use]
    pub fn derive(&self, change: impl Fn(WebConfig) -> WebConfig + Send + Sync + 'static) -> Arc<Self> {
        // The lock is held, so a replacement meanwhile reaches the derived policy, too.
        let mut derived = self.locked();
        let policy = Arc::new(Self::of(made(&self.current.borrow(), &change)));
        derived.retain(|derived| derived.policy.strong_count() > 0);
        derived.push(DerivedPolicy { policy: Arc::downgrade(&policy), change: Arc::new(change) });
        policy
    }

    fn locked(&self) -> MutexGuard<'_, Vec<DerivedPolicy>> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the version in force.
    pub fn current(&self) -> Arc<LivePolicyVersion> {
        Arc::clone(&self.current.borrow())
    }

    /// Replaces the policy and returns the version number. An equal policy is no new version.
    pub fn replace(&self, config: impl Into<WebConfig>) -> u64 {
        let config = config.into();
        let derived = self.locked();
        self.current.send_if_modified(|current| {
            let is_other = current.config != config;
            if is_other {
                *current = Arc::new(LivePolicyVersion { number: current.number + 1, config });
            }
            is_other
        });
        let current = self.current.borrow().clone();
        for DerivedPolicy { policy, change } in derived.iter() {
            if let Some(policy) = policy.upgrade() {
                policy.set(made(&current, &**change));
            }
        }
        current.number
    }

    fn set(&self, next: LivePolicyVersion) {
        self.current.send_if_modified(|current| {
            let is_other = **current != next;
            if is_other {
                *current = Arc::new(next);
            }
            is_other
        });
    }

    /// Subscribes to all versions after the current one.
    pub(crate) fn hear(&self) -> watch::Receiver<Arc<LivePolicyVersion>> {
        self.current.subscribe()
    }
}

fn made(
    of: &LivePolicyVersion,
    change: &(dyn Fn(WebConfig) -> WebConfig + Send + Sync),
) -> LivePolicyVersion {
    LivePolicyVersion { number: of.number, config: change(of.config.clone()) }
}

// === impl DerivedPolicy ===

impl fmt::Debug for DerivedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedPolicy").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::egress::{EgressPolicy, HostPattern, Rule};

    fn of(hosts: &[&str]) -> EgressPolicy {
        let rule = |host: &&str| Rule::for_hosts(HostPattern::parse(host).unwrap());
        EgressPolicy::new(hosts.iter().map(rule).collect())
    }

    fn refusing(config: WebConfig) -> WebConfig {
        let policy = config.policy.clone().refusing_pushes();
        config.with_policy(policy)
    }

    #[test]
    fn derived_policy_follows_its_source_with_the_same_version_number() {
        let house = LivePolicy::new(of(&["a.example"]));
        let derived = house.derive(refusing);
        assert_eq!(derived.current().config.policy, of(&["a.example"]).refusing_pushes());
        let mut heard = derived.hear();
        let number = house.replace(of(&["b.example"]));
        assert_eq!(derived.current().config.policy, of(&["b.example"]).refusing_pushes());
        assert_eq!((number, derived.current().number), (2, 2));
        assert!(heard.has_changed().unwrap());
        heard.mark_unchanged();
        house.replace(of(&["b.example"]));
        assert!(!heard.has_changed().unwrap());
        assert_eq!(house.current().config.policy, of(&["b.example"]), "the control");
    }

    #[test]
    fn dropped_derived_policy_is_forgotten() {
        let house = LivePolicy::new(of(&["a.example"]));
        drop(house.derive(refusing));
        let _kept = house.derive(refusing);
        assert_eq!(house.locked().len(), 1);
    }
}
