//! `approvals`.

use super::AcceptedValues::One;
use super::Member;
use super::MemberDefault::Value;
use super::Scalar::{Any, Whole};

pub(super) const APPROVALS: &[Member] = &[
    Member::new(
        "timeout",
        One(Any("`wait`, `{deny_after: 4h}`, or durations for some of low, medium, high and critical")),
        Value("wait"),
        "when an unanswered approval request is denied: never, after a duration, or after a duration for each risk; a risk without a duration waits",
    ),
    Member::new(
        "retention_days",
        One(Whole(1, 3650)),
        Value("90"),
        "retention of decided approvals, in days",
    )
    .in_unit("days"),
];
