//! Files of the host: none is read, none is changed, and no path leads out of the sandbox.

mod across;
mod changing;
mod devices;
mod own_papers;
mod reading;
mod set_id;
mod ways_out;

pub(crate) use reading::read;

use crate::judge::{Cases, every_case_holds};

/// All cases of this group.
pub(crate) const CASES: &[Cases] = &[
    reading::cases,
    changing::cases,
    ways_out::cases,
    across::cases,
    devices::cases,
    set_id::cases,
    own_papers::cases,
];

#[test]
fn no_file_of_the_host_is_read_or_changed_and_no_path_leads_out() {
    every_case_holds("files", CASES);
}
