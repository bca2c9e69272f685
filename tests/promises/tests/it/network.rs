//! The network: nothing of the host is reached, and nobody on the host is seen to be.

mod families;
pub(crate) mod inbound;
mod ip;
mod local;
mod names;
mod proxies;

use crate::judge::{Cases, every_case_holds};

/// All of them.
pub(crate) const CASES: &[Cases] = &[ip::cases, names::cases, local::cases, families::cases, proxies::cases];

#[test]
fn nobody_outside_is_reached_by_any_address_name_or_socket() {
    every_case_holds("network", CASES);
}
