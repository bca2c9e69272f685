//! Kills at each place: before and after each durable write, and between the steps of an attempt.

use super::client::{FollowUp, WantedJob, pursue_all};
use super::ground::FaultWorld;
use super::{TIMES, by_several, tell};
use belljar_failpoint::{STEPS, VARIABLE, WRITES};
use belljar_testkit::node::Node;
use belljar_testkit::share::Share;

/// Places that a node passes more than once.
const OFTEN: [&str; 6] = ["submit", "claim", "end", "callback", "run", "folder"];

#[test]
fn node_killed_at_any_failpoint_loses_no_job_and_ends_each_once() {
    let places = super::places(WRITES, STEPS);
    let share = Share::current();
    let times = (0..TIMES).filter(|time| share.includes(*time as u64));
    let runs: Vec<_> = places.iter().flat_map(|place| times.clone().map(move |time| (place, time))).collect();
    let deaths = by_several(&runs, || (), |(), (place, time)| die_at(place, *time));
    tell(&format!(
        "{} places, {} deaths at them, 0 jobs lost, 0 ended twice, 0 orphans",
        places.len(),
        deaths
    ));
}

/// Kills a node the first, second or third time that it passes a place, and checks the outcome. Returns the number of
/// kills.
fn die_at(place: &str, time: usize) -> usize {
    let ground = FaultWorld::lay(place, None);
    let arguments = ground.arguments();
    let mut wanted = Vec::new();
    let mut died = 0;
    let later = Some(1 + time % 3).filter(|_| OFTEN.iter().any(|often| place.starts_with(often)));
    for hit in later.into_iter().chain([1]) {
        interrupt(&ground, &mut wanted);
        wanted.extend(ground.jobs());
        if place.starts_with("callback_tried") {
            ground.orchestrator.refuse(6);
        }
        let armed = [(VARIABLE.to_owned(), format!("{place}@{hit}"))];
        // It may die before it prints its address.
        died += match Node::try_start(&ground.world, &arguments, &armed) {
            Err(_) => 1,
            Ok(mut node) => usize::from(pursue_all(&node, &mut wanted).is_err() || node.has_died_soon()),
        };
        if died > 0 {
            break;
        }
        // The place was passed fewer times.
    }
    assert!(died > 0, "nothing died at {place}");
    let mut node = Node::start(&ground.world, &arguments);
    assert!(pursue_all(&node, &mut wanted).is_ok(), "the next one is gone, too: {place}");
    ground.check(&node, &wanted);
    assert_eq!(node.stop(), Some(0), "{place}");
    died
}

/// Kills a node in the middle of two jobs, so that the next one has to clean up.
fn interrupt(ground: &FaultWorld, wanted: &mut Vec<WantedJob>) {
    let node = Node::start(&ground.world, &ground.arguments());
    for mut job in [WantedJob::endless(&ground.mark, FollowUp::Nothing), WantedJob::repeatable()] {
        // From then on no node begins it again, or only up to its maximum number of attempts.
        job.pursue_until_begun(&node);
        wanted.push(job);
    }
}
