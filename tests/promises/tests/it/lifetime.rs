//! Lifetime: the processes of a sandbox end with it and in time, and none outside is affected.

mod first;
mod others;
pub(crate) mod remains;
pub(crate) mod timeouts;

use crate::judge::{CaseSource, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] = &[others::cases];

#[test]
fn sandbox_cannot_signal_trace_or_limit_host_processes() {
    every_case_holds("lifetime", CASES);
}
