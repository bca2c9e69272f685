//! `approvals` in the configuration file.

use super::{ApprovalRules, TimeoutPolicy};
use belljar_contract::action::Risk;
use belljar_contract::yaml::{Members, MistakeLog, Node, Value, duration, place, text_or_number, whole};
use std::collections::BTreeMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Default retention: 90 days.
pub(super) const USUAL_RETENTION: Duration = Duration::from_secs(90 * 86_400);

/// Maximum retention in days.
const LONGEST_DAYS: u64 = 3_650;

const TIMEOUT: &str = "`wait`, `{deny_after: 4h}`, or durations for some of low, medium, high and critical";

// === impl ApprovalRules ===

impl ApprovalRules {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let usual = Self::default();
        let Some(mut members) = Members::open(node, log) else { return usual };
        let days = |node: &Node, log: &mut MistakeLog| {
            let days = whole(node, log, 1..=LONGEST_DAYS)?;
            u32::try_from(days).ok().map(|days| DAY * days)
        };
        let read = Self {
            timeout: members.or("timeout", usual.timeout, timeout),
            retention: members.or("retention_days", usual.retention, days),
        };
        members.finish();
        read
    }
}

fn timeout(node: &Node, log: &mut MistakeLog) -> Option<TimeoutPolicy> {
    let Value::Mapping(written) = &node.value else {
        return text_or_number(node, log, TIMEOUT, |text| (text == "wait").then_some(TimeoutPolicy::Wait));
    };
    if written.is_empty() {
        log.note(node.position, place(node), node.describe(), TIMEOUT);
    }
    let mut members = Members::open(node, log)?;
    let deny_after = members.optional("deny_after", time);
    let tiers: BTreeMap<_, _> = Risk::ALL
        .into_iter()
        .filter_map(|risk| Some((risk, members.optional(risk.as_str(), time)?)))
        .collect();
    if deny_after.is_some() && written.len() > 1 {
        members.log.note(node.position, place(node), "`deny_after` beside others", "`deny_after` alone");
    }
    members.finish();
    Some(deny_after.map_or(TimeoutPolicy::Tiered(tiers), TimeoutPolicy::DenyAfter))
}

fn time(node: &Node, log: &mut MistakeLog) -> Option<Duration> {
    duration(node, log, Duration::from_secs(1)..=DAY * 365)
}
