//! More than one's share: what is limited, is; limits are not raised; output is cut where it should be.

pub(crate) mod disk;
mod limits;
pub(crate) mod memory;
mod output;
pub(crate) mod processor;
mod tables;
mod uncharged;
mod write_back;

use crate::judge::{Cases, every_case_holds};

/// All of them.
pub(crate) const CASES: &[Cases] = &[limits::cases, write_back::cases, tables::cases, uncharged::cases];

#[test]
fn what_is_limited_stays_limited() {
    every_case_holds("resources", CASES);
}
