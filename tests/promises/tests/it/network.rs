//! The network: a sandbox reaches no listener of the host, and no process on the host reaches into it.

mod families;
mod hatch;
pub(crate) mod inbound;
mod ip;
mod local;
mod names;
mod proxies;

use crate::belljar::belljar;
use crate::judge::{Beside, Cases, every_case_holds, judge_all};
use crate::scene::Scene;
use crate::tally::Tally;
use crate::twins;
use belljar_testkit::world::World;

/// All cases of this group.
pub(crate) const CASES: &[Cases] = &[ip::cases, names::cases, local::cases, families::cases, proxies::cases];

#[test]
fn nobody_outside_is_reached_by_any_address_name_or_socket() {
    every_case_holds("network", CASES);
}

/// An open hatch to the web, with one allowed host that doesn't exist, opens no other path, and can't be changed.
#[test]
fn nobody_outside_is_reached_past_a_hatch_to_the_web() {
    let tally = Tally::new("network with a hatch");
    World::as_everyone(belljar(), |world| {
        let mut scene = Scene::lay_for_web(world);
        judge_all(&mut scene, &[CASES, twins::CASES, &[hatch::cases]].concat(), Beside::NOBODY, &tally);
        inbound::judge(&scene, &tally);
    });
    tally.close();
}
