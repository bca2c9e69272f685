//! The database server's processes are killed under a running node: those that serve clients, and the main process.

use super::checker::SettledJobs;
use super::client::{FollowUp, WantedJob, pursue_all};
use super::ground::FaultWorld;
use super::{SeededRandom, tell};
use crate::belljar::belljar;
use belljar_testkit::node::Node;
use belljar_testkit::postgres::Postgres;
use belljar_testkit::share::Share;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::time::Duration;

/// Number of killed client processes. The server needs a moment to recover from each, because it ends all its
/// connections.
const KILLS: u64 = 40;

#[test]
fn node_loses_no_job_when_its_database_server_crashes() {
    let server = match Postgres::start_own() {
        Ok(server) => server,
        Err(why) => {
            return skip("faults::server::node_loses_no_job_when_its_database_server_crashes", &why);
        }
    };
    let url = server.database().unwrap();
    let world = World::new(belljar());
    let mark = format!("sleep {}", 800_000 + std::process::id());
    let node = Node::start(&world, &["--database", &url, "--max-concurrency", "3"]);
    let (mut chance, mut wanted, mut killed) = (SeededRandom(0x5eed), Vec::new(), 0);
    let kills = Share::current().of_count(KILLS) as usize;
    while killed < kills {
        wanted.extend([
            WantedJob::leaving_a_file(),
            WantedJob::of_steps(),
            WantedJob::endless(&mark, FollowUp::Cancel),
        ]);
        let latest = wanted.len() - 3;
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(chance.below(100)));
                server.kill_a_backend()
            });
            // A node that can't reach its database reports so, and is asked again.
            let pursued = pursue_all(&node, &mut wanted[latest..]);
            assert!(pursued.is_ok(), "the node is gone");
            killed += usize::from(killing.join().unwrap());
        });
    }
    assert!(pursue_all(&node, &mut wanted).is_ok());
    SettledJobs { world: &world, node: &node, orchestrator: None, witness: None, mark: &mark }.check(&wanted);
    tell(&format!(
        "{killed} kills of the database server, {} jobs, 0 lost, 0 ended twice, 0 orphans",
        wanted.len()
    ));
}

/// Number of crashes of the server. It takes about a second to start again.
const CRASHES: u64 = 20;

#[test]
fn node_loses_no_job_when_every_database_process_is_killed() {
    let mut server = match Postgres::start_own() {
        Ok(server) => server,
        Err(why) => {
            return skip("faults::server::node_loses_no_job_when_every_database_process_is_killed", &why);
        }
    };
    let ground = FaultWorld::lay("server", Some(server.database().unwrap()));
    let node = Node::start(&ground.world, &ground.arguments());
    let (mut chance, mut wanted) = (SeededRandom(0x5eed), Vec::new());
    let crashes = Share::current().of_count(CRASHES);
    for _ in 0..crashes {
        let latest = wanted.len();
        wanted.extend(ground.jobs());
        std::thread::scope(|scope| {
            let crashing = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(chance.below(150)));
                server.crash().unwrap();
            });
            assert!(pursue_all(&node, &mut wanted[latest..]).is_ok(), "the node is gone");
            crashing.join().unwrap();
        });
    }
    assert!(pursue_all(&node, &mut wanted).is_ok());
    ground.check(&node, &wanted);
    tell(&format!(
        "{crashes} times the whole database server was lost, {} jobs, 0 lost, 0 ended twice, 0 orphans",
        wanted.len()
    ));
}
