//! The network: a sandbox reaches no listener of the host, and no process on the host reaches into it.

mod families;
mod hatch;
pub(crate) mod inbound;
mod ip;
mod local;
mod names;
mod proxies;

use crate::belljar::belljar;
use crate::judge::{CaseSource, HelperProcesses, every_case_holds, judge_all};
use crate::scene::PreparedHost;
use crate::tally::Tally;
use crate::twins;
use belljar_testkit::world::World;

/// All cases of this group.
pub(crate) const CASES: &[CaseSource] =
    &[ip::cases, names::cases, local::cases, families::cases, proxies::cases];

#[test]
fn sandbox_reaches_no_host_by_address_name_or_socket() {
    every_case_holds("network", CASES);
}

/// An open hatch to the web, with one allowed host that doesn't exist, opens no other path, and can't be changed.
#[test]
fn sandbox_with_web_hatch_reaches_no_host_past_it() {
    let tally = Tally::new("network with a hatch");
    World::as_everyone(belljar(), |world| {
        let mut scene = PreparedHost::lay_for_web(world);
        judge_all(
            &mut scene,
            &[CASES, twins::CASES, &[hatch::cases]].concat(),
            HelperProcesses::NONE,
            &tally,
        );
        inbound::judge(&scene, &tally);
    });
    tally.close();
}
