//! Killed at each place: before and after each durable write, and between the steps of an attempt.

use super::checker::Scene;
use super::client::{Also, Wanted, pursue_all};
use super::tell;
use super::witness::Witness;
use crate::belljar::belljar;
use belljar_failpoint::{STEPS, VARIABLE, WRITES};
use belljar_testkit::node::Node;
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// It dies so often at each place.
const TIMES: usize = 20;

/// Nodes at a time. They wait more than they work.
const AT_ONCE: usize = 3;

/// Places that a node comes by more than once.
const OFTEN: [&str; 6] = ["submit", "claim", "end", "callback", "run", "folder"];

#[test]
fn a_node_that_dies_at_any_place_loses_no_job_and_ends_each_once() {
    let writes = WRITES.iter().flat_map(|write| [format!("{write}.before"), format!("{write}.after")]);
    let places = writes.chain(STEPS.iter().map(|&step| step.to_owned()));
    // For whoever looks into one.
    let only = std::env::var("BELLJAR_FAULTS_PLACE").ok();
    let places: Vec<_> = places.filter(|place| only.as_ref().is_none_or(|only| only == place)).collect();
    let runs: Vec<_> = places.iter().flat_map(|place| (0..TIMES).map(move |time| (place, time))).collect();
    let (next, deaths) = (AtomicUsize::new(0), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((place, time)) = runs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let died = die_at(place, *time);
                    *deaths.lock().unwrap() += died;
                }
            });
        }
    });
    tell(&format!(
        "{} places, {} deaths at them, 0 jobs lost, 0 ended twice, 0 orphans",
        places.len(),
        deaths.into_inner().unwrap()
    ));
}

/// Has a node die there, the first, the second or the third time that it comes by, and looks at what is left. How often it
/// died.
fn die_at(place: &str, time: usize) -> usize {
    let world = World::new(belljar());
    let orchestrator = Orchestrator::start();
    world.write("secret", "a-secret-for-signatures");
    let secret = world.path().join("secret").display().to_string();
    let witness = Witness::start();
    let mut config = json!({ "inference": witness.configuration(&world) });
    // Who has answered a callback need not acknowledge anything.
    let has_callbacks = !place.starts_with("acknowledge");
    if has_callbacks {
        config["node"] = json!({ "callback": { "url": orchestrator.url("/"), "secret_file": secret } });
    }
    let config = world.write("config.yaml", config.to_string()).display().to_string();
    let arguments = ["--config", config.as_str(), "--max-concurrency", "3"];
    // A number that nobody else sleeps for.
    let mark = format!("sleep {}", 200_000 + std::process::id() as usize * 100 + time);

    let mut wanted = Vec::new();
    let mut died = 0;
    let later = Some(1 + time % 3).filter(|_| OFTEN.iter().any(|often| place.starts_with(often)));
    for hit in later.into_iter().chain([1]) {
        interrupt(&world, &arguments, &mut wanted, &mark);
        wanted.extend([Wanted::leaving_a_file(), Wanted::of_steps(), Wanted::repeatable()]);
        wanted.extend([Wanted::endless(&mark, Also::Cancel), Witness::job()]);
        if place.starts_with("callback_tried") {
            orchestrator.refuse(6);
        }
        let armed = [(VARIABLE.to_owned(), format!("{place}@{hit}"))];
        // It may die before it says where it listens.
        died += match Node::try_start(&world, &arguments, &armed) {
            Err(_) => 1,
            Ok(mut node) => usize::from(pursue_all(&node, &mut wanted).is_err() || node.has_died_soon()),
        };
        if died > 0 {
            break;
        }
        // There was no second time, or third.
    }
    assert!(died > 0, "nothing died at {place}");
    let mut node = Node::start(&world, &arguments);
    assert!(pursue_all(&node, &mut wanted).is_ok(), "the next one is gone, too: {place}");
    let orchestrator = has_callbacks.then_some(&orchestrator);
    Scene { world: &world, node: &node, orchestrator, witness: Some(&witness), mark: &mark }.check(&wanted);
    assert_eq!(node.stop(), Some(0), "{place}");
    died
}

/// Kills a node in the middle of two jobs, so that the next one has something to clear away.
fn interrupt(world: &World, arguments: &[&str], wanted: &mut Vec<Wanted>, mark: &str) {
    let node = Node::start(world, arguments);
    for mut job in [Wanted::endless(mark, Also::Nothing), Wanted::repeatable()] {
        let _ = job.pursue(&node);
        // From then on nobody begins it again, or only so often.
        wait::until(|| node.job(job.id())["status"] != "accepted");
        wanted.push(job);
    }
}
