//! Resource exhaustion: limits hold, limits can't be raised, and output is truncated at its limit.

pub(crate) mod disk;
mod limits;
pub(crate) mod memory;
mod output;
pub(crate) mod processor;
mod tables;
mod uncharged;
mod write_back;

use crate::judge::{CaseSource, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] = &[limits::cases, write_back::cases, tables::cases, uncharged::cases];

#[test]
fn resource_limits_hold_inside_the_sandbox() {
    every_case_holds("resources", CASES);
}
