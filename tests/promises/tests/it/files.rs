//! Files of the host: none is read, none is changed, and no path leads out of the sandbox.

mod across;
mod changing;
mod devices;
mod own_papers;
mod reading;
mod set_id;
mod ways_out;

pub(crate) use reading::read;

use crate::judge::{CaseSource, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] = &[
    reading::cases,
    changing::cases,
    ways_out::cases,
    across::cases,
    devices::cases,
    set_id::cases,
    own_papers::cases,
];

#[test]
fn sandbox_cannot_read_or_change_host_files_or_escape_by_path() {
    every_case_holds("files", CASES);
}
