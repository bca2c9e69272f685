//! The surroundings of a node in these tests: a world, an orchestrator that receives callbacks, and a witness that jobs
//! call.

use super::checker::SettledJobs;
use super::client::{FollowUp, WantedJob};
use super::witness::CallbackWitness;
use crate::belljar::belljar;
use belljar_testkit::node::Node;
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::world::World;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct FaultWorld {
    pub(super) world: World,
    pub(super) orchestrator: Orchestrator,
    pub(super) witness: CallbackWitness,
    /// A mark in the command line of every long-running process that jobs start: a duration that no other process
    /// sleeps for.
    pub(super) mark: String,
    has_callbacks: bool,
    database: Option<String>,
}

// === impl FaultWorld ===

impl FaultWorld {
    /// Creates the surroundings. The node sends callbacks, except for places that a node with callbacks never passes.
    pub(super) fn lay(place: &str, database: Option<String>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = std::process::id() as usize * 10_000 + NEXT.fetch_add(1, Ordering::SeqCst);
        // A job whose callback was answered needs no acknowledgement.
        let has_callbacks = !place.starts_with("acknowledge");
        let (world, orchestrator, witness) =
            (World::new(belljar()), Orchestrator::start(), CallbackWitness::start());
        world.write("secret", "a-secret-for-signatures");
        let secret = world.path().join("secret").display().to_string();
        let mut config = json!({ "inference": witness.configuration(&world) });
        if has_callbacks {
            config["node"] = json!({ "callback": { "url": orchestrator.url("/"), "secret_file": secret } });
        }
        world.write("config.yaml", config.to_string());
        let mark = format!("sleep {}", 200_000 + number);
        Self { world, orchestrator, witness, mark, has_callbacks, database }
    }

    pub(super) fn arguments(&self) -> Vec<&str> {
        let own = ["--config", "config.yaml", "--max-concurrency", "3"];
        let database = self.database.iter().flat_map(|url| ["--database", url.as_str()]);
        own.into_iter().chain(database).collect()
    }

    /// Returns a job of each kind.
    pub(super) fn jobs(&self) -> [WantedJob; 5] {
        let [file, steps, canceled] = self.short_jobs();
        [file, steps, canceled, WantedJob::repeatable(), CallbackWitness::job()]
    }

    /// Returns a job of each kind that ends soon.
    pub(super) fn short_jobs(&self) -> [WantedJob; 3] {
        [WantedJob::leaving_a_file(), WantedJob::of_steps(), WantedJob::endless(&self.mark, FollowUp::Cancel)]
    }

    /// Checks every invariant of the jobs.
    pub(super) fn check(&self, node: &Node<'_>, wanted: &[WantedJob]) {
        let orchestrator = self.has_callbacks.then_some(&self.orchestrator);
        let (world, witness, mark) = (&self.world, Some(&self.witness), self.mark.as_str());
        SettledJobs { world, node, orchestrator, witness, mark }.check(wanted);
    }
}
