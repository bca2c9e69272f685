//! Kills at arbitrary moments, a thousand in all shares of the long tests together.

use super::checker::SettledJobs;
use super::client::{FollowUp, WantedJob, pursue_all};
use super::{SeededRandom, tell};
use crate::belljar::belljar;
use belljar_testkit::node::Node;
use belljar_testkit::share::Share;
use belljar_testkit::world::World;
use std::time::Duration;

const KILLS: u64 = 1_000;
const AT_ONCE: u64 = 2;

/// Upper bound of a node's life, in milliseconds from when it listens.
const LONGEST: u64 = 120;

#[test]
fn node_killed_a_thousand_times_loses_no_job_and_ends_each_once() {
    let seed =
        std::env::var("BELLJAR_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_u64);
    // Each share has seeds of its own.
    let (share, each) = (Share::current(), KILLS / AT_ONCE);
    let seeds = share.of_seeds(0..KILLS);
    let (seed, each) = (seed + seeds.start, share.of_count(each));
    let jobs: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..AT_ONCE).map(|thread| scope.spawn(move || kill(seed + thread, each))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let kills = each * AT_ONCE;
    tell(&format!("{kills} kills at random (seed {seed}), {jobs} jobs, 0 lost, 0 ended twice, 0 orphans"));
}

/// Kills a node this many times, while it always has work. Returns the number of jobs.
fn kill(seed: u64, times: u64) -> usize {
    let world = World::new(belljar());
    let mut chance = SeededRandom(seed * 2 + 1);
    let mark = format!("sleep {}", 900_000 + std::process::id() as u64 * 10 + seed % 10);
    let mut wanted: Vec<WantedJob> = Vec::new();
    let mut node = Node::start(&world, &["--max-concurrency", "3"]);
    for _ in 0..times {
        wanted.push(match chance.below(4) {
            0 => WantedJob::leaving_a_file(),
            1 => WantedJob::of_steps(),
            2 => WantedJob::repeatable(),
            _ => WantedJob::endless(&mark, FollowUp::Cancel),
        });
        let lives = Duration::from_millis(chance.below(LONGEST));
        std::thread::scope(|scope| {
            let pid = node.pid();
            scope.spawn(move || {
                std::thread::sleep(lives);
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            });
            // Only the latest are pursued here; earlier ones are over, or are checked in the end.
            let latest = wanted.len().saturating_sub(4);
            while pursue_all(&node, &mut wanted[latest..]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        node.killed_and_started();
    }
    assert!(pursue_all(&node, &mut wanted).is_ok());
    SettledJobs { world: &world, node: &node, orchestrator: None, witness: None, mark: &mark }.check(&wanted);
    wanted.len()
}
