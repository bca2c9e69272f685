//! The same rows on containers of an engine, through belljar: what they must withstand is no other than what any
//! sandbox must.

pub(crate) mod exempt;
mod posture;

use crate::belljar::belljar;
use crate::judge::{Beside, Cases, judge_all};
use crate::leaks::{identity, secrets};
use crate::lifetime::{remains, timeouts};
use crate::network::inbound;
use crate::resources::{disk, memory, processor};
use crate::scene::Scene;
use crate::tally::{Tally, tell};
use crate::{files, lifetime, neighbours, network, privileges, resources, twins};
use belljar_testkit::foreign_root::Docker;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::time::Instant;

/// The groups of cases that are data, with who is beside them.
const GROUPS: [(&str, &[Cases], Beside); 8] = [
    ("files", files::CASES, Beside::NOBODY),
    ("network", network::CASES, Beside::NOBODY),
    ("privileges", privileges::CASES, Beside::NOBODY),
    ("resources", resources::CASES, Beside::NOBODY),
    ("lifetime", lifetime::CASES, Beside::NOBODY),
    ("twins", twins::CASES, Beside::NOBODY),
    ("neighbours", &[neighbours::at_once], neighbours::NEIGHBOUR),
    ("successors", &[neighbours::afterwards], neighbours::PREDECESSOR),
];

/// A group that is more than data.
type Group = (&'static str, fn(&mut Scene<'_>, &Tally));

const FURTHER: [Group; 9] = [
    ("secrets", secrets::judge),
    ("identity", |scene, tally| identity::judge(scene, tally)),
    ("posture", |scene, tally| posture::judge(scene, tally)),
    ("inbound", |scene, tally| inbound::judge(scene, tally)),
    ("remains", |scene, tally| remains::judge_all(scene, tally)),
    ("timeouts", |scene, tally| timeouts::judge_all(scene, tally)),
    ("memory", |scene, tally| memory::judge_all(scene, tally)),
    ("disk", |scene, tally| disk::judge_memory(scene, tally)),
    ("processor", |scene, tally| processor::judge(scene, tally)),
];

#[test]
fn every_row_that_applies_holds_in_a_container_too() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("every_row_that_applies_holds_in_a_container_too", &reason),
    };
    let tally = Tally::of_containers("containers");
    // A world for each: what the controls of one do to it is not for the others.
    let judge = |name: &str, group: &dyn Fn(&mut Scene<'_>)| {
        let begun = Instant::now();
        let world = World::new(belljar());
        group(&mut Scene::lay_for_containers(&world, &engine));
        tell(&format!("{name}: {:.1} s", begun.elapsed().as_secs_f64()));
    };
    for (name, cases, beside) in GROUPS {
        judge(name, &|scene| judge_all(scene, cases, beside, &tally));
    }
    for (name, group) in FURTHER {
        judge(name, &|scene| group(scene, &tally));
    }
    exempt::tell_and_check(&tally);
    tally.close();
}
