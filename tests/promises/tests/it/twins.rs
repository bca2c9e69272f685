//! Features that must keep working: over-blocking is a defect, too. Each twin is attempted beside a denied case, and must
//! also work where nothing forbids it.

pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod signals;
pub(crate) mod sockets;
pub(crate) mod time;
pub(crate) mod waiting;

use crate::judge::{CaseSource, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] = &[
    files::cases,
    memory::cases,
    processes::cases,
    programs::cases,
    signals::cases,
    sockets::cases,
    time::cases,
    waiting::cases,
];

#[test]
fn ordinary_operations_work_inside_as_outside() {
    every_case_holds("twins", CASES);
}
