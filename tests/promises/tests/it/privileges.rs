//! Privileges and the kernel: no right is gained, no namespace is made or entered, and further kernel features can't be used.

mod capabilities;
mod entries;
mod kernel_calls;
mod machine;
mod namespaces;
mod proc_files;

use crate::judge::{CaseSource, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] = &[
    capabilities::cases,
    namespaces::cases,
    machine::cases,
    kernel_calls::cases,
    entries::cases,
    proc_files::cases,
];

#[test]
fn sandbox_gains_no_privilege_and_makes_no_dangerous_call() {
    every_case_holds("privileges", CASES);
}
