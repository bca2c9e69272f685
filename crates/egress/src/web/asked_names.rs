//! Rate limit for the host names that a run requests and that only wildcard patterns allow. The name server of such a zone sees
//! each name, so names could carry data out. The limit is checked before a name is resolved.

use belljar_policy::egress::{AllowedDestination, Destination, Host, HostName, HostPattern, NameLimits};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Names that one run has requested.
#[derive(Debug, Default)]
pub(super) struct RequestedNames(Mutex<Vec<WildcardNames>>);

/// Names that one wildcard pattern has allowed.
#[derive(Debug)]
struct WildcardNames {
    pattern: HostPattern,
    known: HashSet<HostName>,
    /// Time until the limit has fully recovered, as it was at `since`.
    owed: Duration,
    since: Instant,
}

/// Maximum number of remembered names for each pattern. A run with more has all of them counted anew.
const MOST_KNOWN: usize = 16_384;

const HOUR: Duration = Duration::from_secs(3_600);

// === impl RequestedNames ===

impl RequestedNames {
    /// Returns true if the name may be requested. A new name counts against the limit; a known one does not.
    pub(super) fn may_ask(&self, allowed: &AllowedDestination<Destination>, now: Instant) -> bool {
        let (Host::Name(name), wildcards) = (&allowed.value().host, allowed.wildcards()) else { return true };
        if wildcards.is_empty() {
            return true;
        }
        // No panic can leave the list half changed.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for wildcard in wildcards {
            if all.iter().all(|below| below.pattern != wildcard.pattern) {
                all.push(WildcardNames::of(wildcard.pattern.clone(), now));
            }
        }
        let is_of =
            |below: &&mut WildcardNames| wildcards.iter().any(|wildcard| wildcard.pattern == below.pattern);
        let mut those: Vec<&mut WildcardNames> = all.iter_mut().filter(is_of).collect();
        if those.iter().any(|below| below.known.contains(name)) {
            return true;
        }
        those.iter_mut().any(|below| {
            let of_it = wildcards.iter().find(|wildcard| wildcard.pattern == below.pattern);
            of_it.is_some_and(|wildcard| below.take(name, wildcard.limits, now))
        })
    }
}

// === impl WildcardNames ===

impl WildcardNames {
    fn of(pattern: HostPattern, now: Instant) -> Self {
        Self { pattern, known: HashSet::new(), owed: Duration::ZERO, since: now }
    }

    /// Counts one more name if the limit has room for it.
    fn take(&mut self, name: &HostName, limits: NameLimits, now: Instant) -> bool {
        let apart = HOUR / limits.an_hour.max(1);
        let owed = self.owed.saturating_sub(now.saturating_duration_since(self.since)) + apart;
        if owed > apart * limits.at_once {
            return false;
        }
        (self.owed, self.since) = (owed, now);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::egress::{EgressPolicy, EgressRequest, Rule};

    fn rule(pattern: &str, at_once: u32, an_hour: u32) -> Rule {
        let names = NameLimits { at_once, an_hour, ..NameLimits::default() };
        Rule { names, ..Rule::for_hosts(HostPattern::parse(pattern).unwrap()) }
    }

    /// Number of these names that may be requested at that time.
    fn count(
        asked: &RequestedNames,
        policy: &EgressPolicy,
        names: impl Iterator<Item = String>,
        now: Instant,
    ) -> usize {
        names
            .filter(|name| {
                let destination = Destination { host: Host::parse(name).unwrap(), port: 443 };
                asked.may_ask(&policy.decide(destination, EgressRequest::Tunnel).unwrap(), now)
            })
            .count()
    }

    fn names(from: u32, to: u32, suffix: &str) -> impl Iterator<Item = String> {
        (from..to).map(move |number| format!("n{number}.{suffix}"))
    }

    #[test]
    fn wildcard_names_are_limited_by_a_burst_and_an_hourly_rate() {
        let (asked, now) = (RequestedNames::default(), Instant::now());
        let policy = EgressPolicy::new(vec![rule("**.zone.test", 10, 60), rule("named.zone.test", 1, 1)]);
        let counted = |from, to, after: u64| {
            count(&asked, &policy, names(from, to, "zone.test"), now + Duration::from_secs(after))
        };
        assert_eq!(counted(0, 100, 0), 10);
        // Known names are remembered and cost nothing.
        assert_eq!((counted(0, 100, 59), counted(0, 100, 60), counted(0, 11, 60)), (10, 11, 11));
        assert_eq!(counted(100, 200, 60 * 4), 3);
        // The burst limit holds, however long the run has requested nothing.
        assert_eq!(counted(200, 300, 60 * 100_000), 10);
        let named = std::iter::repeat_n("named.zone.test".to_owned(), 20);
        assert_eq!(count(&asked, &policy, named, now + Duration::from_secs(60 * 100_000)), 20);
    }

    #[test]
    fn each_wildcard_pattern_has_its_own_name_limit() {
        let (asked, now) = (RequestedNames::default(), Instant::now());
        let rules = vec![rule("*.a.test", 3, 1), rule("**.a.test", 5, 1), rule("*.b.test", 2, 1)];
        let policy = EgressPolicy::new(rules);
        assert_eq!(count(&asked, &policy, names(0, 50, "b.test"), now), 2);
        assert_eq!(count(&asked, &policy, names(0, 50, "x.a.test"), now), 5);
        assert_eq!(count(&asked, &policy, names(0, 50, "a.test"), now), 3);
    }

    #[test]
    fn names_beyond_the_remembered_maximum_are_counted_anew() {
        let (asked, now) = (RequestedNames::default(), Instant::now());
        let policy = EgressPolicy::new(vec![rule("*.a.test", 20_000, 1)]);
        assert_eq!(count(&asked, &policy, names(0, 16_385, "a.test"), now), 16_385);
        assert_eq!(count(&asked, &policy, names(0, 16_385, "a.test"), now), 3_615 + 1);
    }
}
