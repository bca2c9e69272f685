//! Lifetime: the processes of a sandbox end with it and in time, and none outside is affected.

mod first;
mod others;
pub(crate) mod remains;
pub(crate) mod timeouts;

use crate::judge::{Cases, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[Cases] = &[others::cases];

#[test]
fn no_process_of_the_host_is_signaled_traced_or_limited() {
    every_case_holds("lifetime", CASES);
}
