//! Runs the same rows on containers of an engine, started by belljar: containers must withstand the same attempts as any
//! sandbox.

pub(crate) mod exempt;
mod posture;

use crate::belljar::belljar;
use crate::judge::{CaseSource, HelperProcesses, judge_all};
use crate::leaks::{identity, secrets};
use crate::lifetime::{remains, timeouts};
use crate::network::inbound;
use crate::resources::{disk, memory, processor};
use crate::scene::Scene;
use crate::tally::{Tally, tell};
use crate::way::Way;
use crate::{files, lifetime, neighbours, network, privileges, resources, twins};
use belljar_testkit::foreign_root::Docker;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::thread;
use std::time::Instant;

/// Cases that are data: a name, the cases, the processes beside them, and the ways that they apply to.
type DataGroup = (&'static str, &'static [CaseSource], HelperProcesses, &'static [Way]);

const DATA: [DataGroup; 7] = [
    ("files", files::CASES, HelperProcesses::NOBODY, Way::OF_CONTAINERS),
    ("network", network::CASES, HelperProcesses::NOBODY, &[Way::Direct, Way::Session]),
    ("privileges", privileges::CASES, HelperProcesses::NOBODY, Way::COPY_AND_SESSION),
    ("lifetime", lifetime::CASES, HelperProcesses::NOBODY, &[Way::Session]),
    ("twins", twins::CASES, HelperProcesses::NOBODY, &[Way::Empty, Way::Session]),
    ("neighbours", &[neighbours::at_once], neighbours::NEIGHBOUR, Way::COPY_AND_SESSION),
    ("successors", &[neighbours::afterwards], neighbours::PREDECESSOR, Way::COPY_AND_SESSION),
];

/// Groups that need code of their own.
type CodeGroup = (&'static str, fn(&mut Scene<'_>, &Tally), &'static [Way]);

const FURTHER: [CodeGroup; 7] = [
    ("secrets", secrets::judge, &[Way::Direct, Way::Session]),
    ("identity", |scene, tally| identity::judge(scene, tally), Way::COPY_AND_SESSION),
    ("posture", |scene, tally| posture::judge(scene, tally), &[Way::Empty, Way::Direct, Way::Session]),
    ("inbound", |scene, tally| inbound::judge(scene, tally), Way::COPY_AND_SESSION),
    ("remains", |scene, tally| remains::judge_all(scene, tally), &[Way::Copy]),
    ("timeouts", |scene, tally| timeouts::judge_all(scene, tally), Way::COPY_AND_SESSION),
    ("disk", |scene, tally| disk::judge_memory(scene, tally), Way::COPY_AND_SESSION),
];

#[test]
fn every_applicable_case_holds_in_containers() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("every_applicable_case_holds_in_containers", &reason),
    };
    // Each group gets a world of its own, so that the controls of one don't affect another.
    let judge = |name: &str, ways: &'static [Way], group: &dyn Fn(&mut Scene<'_>)| {
        let begun = Instant::now();
        let world = World::new(belljar());
        group(&mut Scene::lay_for_containers(&world, &engine, ways));
        tell(&format!("{name}: {:.1} s", begun.elapsed().as_secs_f64()));
    };
    // An engine is slow to start a container; two halves in parallel take less time.
    let (data, further) = thread::scope(|scope| {
        let data = scope.spawn(|| {
            let tally = Tally::of_containers("containers");
            for (name, cases, beside, ways) in DATA {
                judge(name, ways, &|scene| judge_all(scene, cases, beside, &tally));
            }
            judge("memory", Way::COPY_AND_SESSION, &|scene| memory::judge_all(scene, &tally));
            tally
        });
        let further = Tally::of_containers("containers, further");
        for (name, group, ways) in FURTHER {
            judge(name, ways, &|scene| group(scene, &further));
        }
        (data.join().unwrap(), further)
    });
    // Measurements here are disturbed by other groups; and while the control takes all processes, an engine may get
    // none.
    judge("processor", Way::COPY_AND_SESSION, &|scene| processor::judge(scene, &data));
    judge("resources", &[Way::Empty, Way::Session], &|scene| {
        judge_all(scene, resources::CASES, HelperProcesses::NOBODY, &data);
    });
    exempt::tell_and_check(&[&data, &further]);
    data.close();
    further.close();
}
