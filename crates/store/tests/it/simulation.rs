//! A simulation of jobs, leases and callbacks: nodes that die, pause, resume and restart, orchestrators that repeat and
//! cancel requests and whose answers get lost, and a clock that jumps. The course is random, and the same for the same
//! seed.
//!
//! A seed that fails is printed; `BELLJAR_SIMULATION_SEED=N` runs it alone.

mod checker;
mod node;
mod orchestrator;

use belljar_store::database::{Database, Location};
use belljar_store::jobs::Jobs;
use belljar_testkit::random::Random;
use belljar_testkit::share::Share;
use checker::Checker;
use jiff::{SignedDuration, Timestamp};
use node::SimulatedNode;
use orchestrator::Orchestrator;
use std::io::Write;
use std::path::Path;

/// Number of seeds, and of steps for each.
const SEEDS: u64 = 250;
const STEPS: usize = 90;
const STEPS_BETWEEN_CHECKS: usize = 10;

/// Maximum number of rounds until all jobs end once faults have stopped.
const ROUNDS: usize = 25;

/// State of the simulation.
struct SimulationState {
    chance: Random,
    jobs: Jobs,
    now: Timestamp,
    nodes: Vec<SimulatedNode>,
    orchestrator: Orchestrator,
    checker: Checker,
}

/// Prints the seed if the test fails.
struct SeedPrinter(u64);

impl Drop for SeedPrinter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            let told = format!("the simulation failed with BELLJAR_SIMULATION_SEED={seed}\n");
            let _ = std::io::stderr().write_all(told.as_bytes());
        }
    }
}

#[test]
fn simulated_faults_never_end_a_job_twice_or_reorder_its_events() {
    let one = std::env::var("BELLJAR_SIMULATION_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or_else(|| Share::current().of_seeds(0..SEEDS), |seed| seed..seed + 1);
    let many = seeds.end - seeds.start;
    let (mut ended, mut begun_again) = (0, 0);
    for seed in seeds {
        let _told = SeedPrinter(seed);
        let checker = run(seed);
        ended += checker.ended();
        begun_again += checker.begun_again();
    }
    println!(
        "{many} seeds: {ended} jobs ended once each, {begun_again} of them begun again after their node was lost"
    );
    // Otherwise the test would prove nothing.
    assert!(
        one.is_some() || (ended as u64 > 4 * many && begun_again as u64 > many / 5),
        "{ended} {begun_again}"
    );
}

#[test]
fn simulation_is_deterministic_for_a_seed() {
    let story = |seed| run(seed).story();
    assert_eq!(story(7), story(7));
    assert_ne!(story(7), story(8));
}

fn run(seed: u64) -> Checker {
    // In memory, because disk failures are tested elsewhere.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = SimulationState::new(seed, folder.path()).await;
        for step in 0..STEPS {
            world.step().await;
            if step % STEPS_BETWEEN_CHECKS == 0 {
                world.check().await;
            }
        }
        world.come_to_rest().await;
        world.checker
    })
}

// === impl SimulationState ===

impl SimulationState {
    async fn new(seed: u64, folder: &Path) -> Self {
        let database = Database::open(&Location::File(folder.join("jobs.db"))).await.unwrap();
        let jobs = Jobs::new(database);
        let mut chance = Random::new(seed);
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut nodes = Vec::new();
        for number in 0..3 {
            nodes.push(SimulatedNode::start(number, &jobs, &mut chance, now).await);
        }
        let orchestrator = Orchestrator::default();
        Self { chance, jobs, now, nodes, orchestrator, checker: Checker::default() }
    }

    /// Performs one random action.
    async fn step(&mut self) {
        let Self { chance, jobs, now, nodes, orchestrator, checker } = self;
        *now = match chance.below(40) {
            // The wall clock is set.
            0 => *now + SignedDuration::from_hours(24),
            1 => *now - SignedDuration::from_hours(24),
            _ => *now + SignedDuration::from_millis(20),
        };
        let which = chance.below(nodes.len());
        match chance.below(10) {
            0 | 1 => orchestrator.submit(jobs, nodes, chance, *now).await,
            2 => orchestrator.bother(jobs, chance, *now).await,
            3 => {
                let others: Vec<String> = nodes.iter().map(SimulatedNode::instance).collect();
                nodes[which].fault(jobs, chance, *now).await;
                let is_silent = |instance: &String| nodes.iter().any(|node| node.is_silent_as(instance));
                let silent: Vec<_> = others.into_iter().filter(is_silent).collect();
                nodes[which].give_up(jobs, &silent, *now).await;
            }
            4 | 5 => nodes[which].deliver(jobs, orchestrator, chance, *now).await,
            _ => nodes[which].work(jobs, checker, chance, *now).await,
        }
    }

    async fn check(&mut self) {
        for job_id in self.orchestrator.accepted() {
            let found = self.jobs.find(job_id).await.unwrap();
            self.checker.check(job_id, found.as_ref());
        }
    }

    /// All nodes run, no fault occurs, and no job is added: then all jobs end, and the orchestrator hears of every end.
    async fn come_to_rest(&mut self) {
        for node in &mut self.nodes {
            node.revive(&self.jobs, &mut self.chance, self.now).await;
        }
        for _ in 0..ROUNDS {
            self.now += SignedDuration::from_millis(20);
            let instances = self.jobs.instances().await.unwrap();
            let lives = |id: &String| self.nodes.iter().any(|node| node.instance() == *id);
            let silent: Vec<_> = instances.into_iter().map(|one| one.id).filter(|id| !lives(id)).collect();
            for node in &mut self.nodes {
                node.give_up(&self.jobs, &silent, self.now).await;
                node.work_reliably(&self.jobs, &mut self.checker, &mut self.chance, self.now).await;
                node.deliver_reliably(&self.jobs, &mut self.orchestrator, self.now).await;
            }
        }
        self.check().await;
        for job_id in self.orchestrator.accepted() {
            let job = self.jobs.find(job_id).await.unwrap().unwrap();
            assert!(job.life.state.is_final(), "{job_id} never ends: {:?}", job.life);
            let states = self.jobs.states_after(job_id, 0).await.unwrap();
            self.checker.check_story(job_id, &states);
            self.orchestrator.check_told(job_id, &states);
        }
    }
}
