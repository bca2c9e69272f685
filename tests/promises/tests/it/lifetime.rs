//! Lifetime: what is in a sandbox ends with it, ends in time, and ends nobody outside.

mod first;
mod others;
pub(crate) mod remains;
pub(crate) mod timeouts;

use crate::judge::{Cases, every_case_holds};

/// All of them.
pub(crate) const CASES: &[Cases] = &[others::cases];

#[test]
fn no_process_of_the_host_is_signaled_traced_or_limited() {
    every_case_holds("lifetime", CASES);
}
