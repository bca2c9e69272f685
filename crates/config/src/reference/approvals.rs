//! `approvals`.

use super::AcceptedValues::One;
use super::Member;
use super::MemberDefault::Stands;

pub(super) const APPROVALS: &[Member] = &[
    Member {
        name: "timeout",
        takes: One("`wait`, `{deny_after: 4h}`, or durations for some of low, medium, high and critical"),
        unsaid: Stands("wait"),
        meaning: "when an unanswered approval request is denied: never, after a duration, or after a \
    duration for each risk; a risk without a duration waits",
    },
    Member {
        name: "retention_days",
        takes: One("a whole number from 1 to 3650"),
        unsaid: Stands("90"),
        meaning: "retention of decided approvals, in days",
    },
];
