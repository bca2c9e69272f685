//! Kills of a process that the node depends on while the node is held at a place: a process of a sandbox, or one of the
//! database server.

use super::client::{FollowUp, WantedJob, pursue_all};
use super::director::Director;
use super::ground::FaultWorld;
use super::{SeededRandom, TIMES, by_several, places, tell};
use belljar_failpoint::{STEPS, WRITES};
use belljar_testkit::node::Node;
use belljar_testkit::postgres::Postgres;
use belljar_testkit::processes::sealed_below;
use belljar_testkit::share::Share;
use belljar_testkit::skip::skip;
use belljar_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Writes that happen while jobs run.
const WHILE_JOBS_RUN: [&str; 6] = ["submit", "claim", "tell", "end", "cancel", "callback"];

/// Steps at the start of a node, when no job runs.
const AT_THE_BEGINNING: [&str; 3] = ["migrate.before", "migrate.after", "recovery.cleared"];

/// Maximum number of rounds of work until a place is passed.
const MOST_ROUNDS: usize = 12;

/// Number of jobs of each kind.
const EACH_KIND: usize = 5;

#[test]
fn node_ends_each_job_once_when_its_sandbox_is_killed_at_any_point() {
    let steps: Vec<_> = STEPS.iter().copied().filter(|step| !AT_THE_BEGINNING.contains(step)).collect();
    let places = places(&WHILE_JOBS_RUN, &steps);
    let killed = by_several(
        &places,
        || (),
        |(), place| {
            let ground = FaultWorld::lay(place, None);
            let mut chance = SeededRandom(0x5eed);
            suffer(place, &ground, move |node| {
                let sealed = sealed_below(node);
                let victim = sealed.get(chance.below(sealed.len().max(1) as u64) as usize);
                victim.is_some_and(|pid| kill(*pid))
            })
        },
    );
    tell(&format!(
        "{} places, {killed} kills of sandboxes at them, 0 jobs lost, 0 ended twice",
        places.len()
    ));
}

#[test]
fn node_loses_no_job_when_its_database_is_killed_at_any_write() {
    if let Err(why) = Postgres::start_own() {
        const NAME: &str = "faults::victims::node_loses_no_job_when_its_database_is_killed_at_any_write";
        return skip(NAME, &why);
    }
    let places = places(WRITES, &["migrate.before", "migrate.after"]);
    let killed = by_several(
        &places,
        || Arc::new(Postgres::start_own().unwrap()),
        |server, place| {
            let ground = FaultWorld::lay(place, Some(server.database().unwrap()));
            let server = Arc::clone(server);
            suffer(place, &ground, move |_| server.kill_a_backend())
        },
    );
    tell(&format!(
        "{} places, {killed} kills of the database at them, 0 jobs lost, 0 ended twice",
        places.len()
    ));
}

/// Kills a process while a node is at that place, again and again, and checks all jobs. Returns the number of kills.
fn suffer(place: &str, ground: &FaultWorld, mut kill: impl FnMut(i32) -> bool + Send + 'static) -> usize {
    let director = Director::start(ground.world.path());
    let environment = [director.environment()];
    let pid = Arc::new(AtomicU32::new(0));
    let victim = Arc::new(std::sync::Mutex::new(move |pid: i32| kill(pid)));
    let begin = || {
        let node = begun(ground, &environment);
        pid.store(node.pid(), Ordering::SeqCst);
        node
    };
    let (mut node, mut wanted) = (begin(), Vec::<WantedJob>::new());
    let share = Share::current();
    let times = (0..TIMES).filter(|time| share.includes(*time as u64));
    for time in times.clone() {
        let (of_node, kill) = (Arc::clone(&pid), Arc::clone(&victim));
        director.order(place, move || {
            let pid = of_node.load(Ordering::SeqCst);
            kill.lock().unwrap()(pid.cast_signed())
        });
        for _ in 0..MOST_ROUNDS {
            if place.starts_with("callback_tried") {
                ground.orchestrator.refuse(3);
            }
            let latest = wanted.len();
            // Models are called for the audit's places, and in some rounds for the others.
            match place.starts_with("audit") || time % EACH_KIND == 0 {
                true => wanted.extend(ground.jobs()),
                false => wanted.extend(ground.short_jobs()),
            }
            let is_there = pursue_all(&node, &mut wanted[latest..]);
            assert!(is_there.is_ok(), "the node is gone at {place}: {}", node.log());
            if place.starts_with("beat") {
                wait::until(|| director.is_done());
            }
            if director.is_done() {
                break;
            }
            // A place that the node passes only as it stops, or as it starts with unfinished jobs.
            wanted.extend(interrupted(&node, ground));
            drop(node);
            node = begin();
        }
        assert!(director.is_done(), "no process was killed at {place} the time {time}");
    }
    assert!(pursue_all(&node, &mut wanted).is_ok(), "the node is gone: {place}");
    ground.check(&node, &wanted);
    times.count()
}

/// Returns running jobs, of which one may be retried.
fn interrupted(node: &Node<'_>, ground: &FaultWorld) -> [WantedJob; 2] {
    let mut jobs = [WantedJob::endless(&ground.mark, FollowUp::Nothing), WantedJob::repeatable()];
    for job in &mut jobs {
        job.pursue_until_begun(node);
    }
    jobs
}

/// Starts a node and returns it once it serves. Its database may be unreachable at first.
fn begun<'g>(ground: &'g FaultWorld, environment: &[(String, String)]) -> Node<'g> {
    let given_up = Instant::now() + Duration::from_secs(60);
    loop {
        match Node::try_start(&ground.world, &ground.arguments(), environment) {
            Ok(node) => return node,
            Err(log) => assert!(Instant::now() < given_up, "it does not start again: {log}"),
        }
    }
}

fn kill(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}
