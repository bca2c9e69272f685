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
use crate::scene::PreparedHost;
use crate::tally::{Tally, tell};
use crate::way::StartMethod;
use crate::{files, lifetime, neighbours, network, privileges, resources, twins};
use belljar_testkit::foreign_root::Docker;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::thread;
use std::time::Instant;

/// Cases that are data: a name, the cases, the processes beside them, and the ways that they apply to.
type DataGroup = (&'static str, &'static [CaseSource], HelperProcesses, &'static [StartMethod]);

const DATA: [DataGroup; 7] = [
    ("files", files::CASES, HelperProcesses::NONE, StartMethod::OF_CONTAINERS),
    ("network", network::CASES, HelperProcesses::NONE, &[StartMethod::Direct, StartMethod::Session]),
    ("privileges", privileges::CASES, HelperProcesses::NONE, StartMethod::COPY_AND_SESSION),
    ("lifetime", lifetime::CASES, HelperProcesses::NONE, &[StartMethod::Session]),
    ("twins", twins::CASES, HelperProcesses::NONE, &[StartMethod::Empty, StartMethod::Session]),
    ("neighbours", &[neighbours::at_once], neighbours::NEIGHBOUR, StartMethod::COPY_AND_SESSION),
    ("successors", &[neighbours::afterwards], neighbours::PREDECESSOR, StartMethod::COPY_AND_SESSION),
];

/// Groups that need code of their own.
type CodeGroup = (&'static str, fn(&mut PreparedHost<'_>, &Tally), &'static [StartMethod]);

const FURTHER: [CodeGroup; 7] = [
    ("secrets", secrets::judge, &[StartMethod::Direct, StartMethod::Session]),
    ("identity", |scene, tally| identity::judge(scene, tally), StartMethod::COPY_AND_SESSION),
    (
        "posture",
        |scene, tally| posture::judge(scene, tally),
        &[StartMethod::Empty, StartMethod::Direct, StartMethod::Session],
    ),
    ("inbound", |scene, tally| inbound::judge(scene, tally), StartMethod::COPY_AND_SESSION),
    ("remains", |scene, tally| remains::judge_all(scene, tally), &[StartMethod::Copy]),
    ("timeouts", |scene, tally| timeouts::judge_all(scene, tally), StartMethod::COPY_AND_SESSION),
    ("disk", |scene, tally| disk::judge_memory(scene, tally), StartMethod::COPY_AND_SESSION),
];

#[test]
fn every_applicable_case_holds_in_containers() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("every_applicable_case_holds_in_containers", &reason),
    };
    // Each group gets a world of its own, so that the controls of one don't affect another.
    let judge = |name: &str, ways: &'static [StartMethod], group: &dyn Fn(&mut PreparedHost<'_>)| {
        let begun = Instant::now();
        let world = World::new(belljar());
        group(&mut PreparedHost::lay_for_containers(&world, &engine, ways));
        tell(&format!("{name}: {:.1} s", begun.elapsed().as_secs_f64()));
    };
    // An engine is slow to start a container; two halves in parallel take less time.
    let (data, further) = thread::scope(|scope| {
        let data = scope.spawn(|| {
            let tally = Tally::of_containers("containers");
            for (name, cases, beside, ways) in DATA {
                judge(name, ways, &|scene| judge_all(scene, cases, beside, &tally));
            }
            judge("memory", StartMethod::COPY_AND_SESSION, &|scene| memory::judge_all(scene, &tally));
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
    judge("processor", StartMethod::COPY_AND_SESSION, &|scene| processor::judge(scene, &data));
    judge("resources", &[StartMethod::Empty, StartMethod::Session], &|scene| {
        judge_all(scene, resources::CASES, HelperProcesses::NONE, &data);
    });
    exempt::tell_and_check(&[&data, &further]);
    data.close();
    further.close();
}
