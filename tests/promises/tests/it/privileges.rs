//! Privileges and the kernel: no right is gained, no namespace is made or entered, and further kernel features can't be used.

mod capabilities;
mod entries;
mod kernel_calls;
mod machine;
mod namespaces;
mod proc_files;

use crate::judge::{Cases, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[Cases] = &[
    capabilities::cases,
    namespaces::cases,
    machine::cases,
    kernel_calls::cases,
    entries::cases,
    proc_files::cases,
];

#[test]
fn no_right_is_gained_and_no_dangerous_call_reaches_the_kernel() {
    every_case_holds("privileges", CASES);
}
