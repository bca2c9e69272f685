//! Time limits of approval requests. A request without an answer in time is denied; nothing here ever approves one.
//!
//! ```yaml
//! approvals:
//!   timeout: {high: 1h, critical: 15m}   # or wait, or {deny_after: 4h}
//!   retention_days: 90
//! ```

mod config;

use belljar_contract::action::Risk;
use std::collections::BTreeMap;
use std::time::Duration;

/// Configuration of approvals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Time limit of requests.
    pub timeout: TimeoutPolicy,
    /// Retention of decided requests.
    pub retention: Duration,
}

/// Time limit after which an unanswered request is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TimeoutPolicy {
    /// None: a request waits without limit.
    #[default]
    Wait,
    /// One limit for all requests.
    DenyAfter(Duration),
    /// Limits by risk; a risk without one waits without limit.
    Tiered(BTreeMap<Risk, Duration>),
}

/// Expiry of approval requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry;

// === impl Expiry ===

impl Expiry {
    /// Returns the time limit for a request of that risk; `None` for no limit.
    pub fn of(risk: Risk, policy: &TimeoutPolicy) -> Option<Duration> {
        match policy {
            TimeoutPolicy::Wait => None,
            TimeoutPolicy::DenyAfter(duration) => Some(*duration),
            TimeoutPolicy::Tiered(tiers) => tiers.get(&risk).copied(),
        }
    }
}

// === impl ApprovalRules ===

impl Default for ApprovalRules {
    fn default() -> Self {
        Self { timeout: TimeoutPolicy::Wait, retention: config::USUAL_RETENTION }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml::{self, MistakeLog, Mistakes};

    fn read(text: &str) -> Result<ApprovalRules, Mistakes> {
        let mut log = MistakeLog::default();
        let root = yaml::parse(text.as_bytes(), &mut log).unwrap();
        let rules = ApprovalRules::read(&root, &mut log);
        log.finish().map(|()| rules)
    }

    fn timeouts(text: &str) -> Vec<Option<u64>> {
        let rules = read(&format!("timeout: {text}")).unwrap();
        Risk::ALL.iter().map(|risk| Expiry::of(*risk, &rules.timeout).map(|it| it.as_secs())).collect()
    }

    #[test]
    fn approval_request_waits_or_is_denied_after_its_risks_timeout() {
        assert_eq!(read("{}").unwrap(), ApprovalRules::default());
        assert_eq!(timeouts("wait"), [None; 4]);
        assert_eq!(timeouts("{deny_after: 4h}"), [Some(14_400); 4]);
        assert_eq!(timeouts("{low: 2d, critical: 15m}"), [Some(172_800), None, None, Some(900)]);
    }

    #[test]
    fn finished_approvals_are_retained_for_the_configured_or_ninety_days() {
        let kept = |text: &str| read(text).map(|rules| rules.retention.as_secs()).ok();
        assert_eq!(kept("{}"), Some(7_776_000));
        assert_eq!(kept("retention_days: 1"), Some(86_400));
        assert_eq!(kept("retention_days: 30"), Some(2_592_000));
        assert_eq!(kept("retention_days: 3650"), Some(315_360_000));
        for wrong in ["0", "3651", "-1", "1.5", "forever"] {
            assert_eq!(kept(&format!("retention_days: {wrong}")), None, "{wrong}");
        }
    }

    #[test]
    fn approval_timeout_is_at_most_one_year() {
        assert_eq!(timeouts("{deny_after: 365d}"), [Some(31_536_000); 4]);
        assert!(read("timeout: {deny_after: 366d}").is_err());
        assert_eq!(timeouts("{deny_after: 1s}"), [Some(1); 4]);
    }

    #[test]
    fn configuration_cannot_auto_approve_on_timeout_and_reports_errors() {
        for wrong in
            ["approve", "{approve_after: 4h}", "{low: approve}", "{deny_after: 0s}", "{}", "[]", "4h"]
        {
            assert!(read(&format!("timeout: {wrong}")).is_err(), "{wrong}");
        }
        assert!(read("timeout: {deny_after: 4h, low: 1h}").is_err());
        let mistakes =
            read("timeout: {low: soon, hihg: 1h}\nretention_days: 0\nmore: 1").unwrap_err().to_string();
        for part in ["timeout.low", "timeout.hihg", "critical, deny_after, high", "retention_days", "more"] {
            assert!(mistakes.contains(part), "{part} in {mistakes}");
        }
    }
}
