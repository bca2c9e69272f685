//! Jobs of a node, by its Worker API: the time until a job is on disk, jobs completed per second, the cost of many stored
//! jobs, and the node's memory.
//!
//! The floor is the minimum cost: one insert that is on disk, and one sandbox with `/bin/true` in it.

mod client;
mod floor;
mod growth;
mod memory;

pub(crate) use growth::growth;
pub(crate) use memory::memory;

use crate::Programs;
use crate::rounds::{Goal, hold, judge, median, ratio};
use belljar_testkit::node::{Node, TOKEN, command, script};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::world::World;
use client::Client;
use floor::{BareBackend, Table};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Maximum ratio to the floor.
const GOAL: Goal = Goal::AtMost(2.0);

const ROUNDS: usize = 5;
const RUN: &str = "/v1/worker/jobs:run";

/// The storage of jobs: a node's database, and a bare database of the same kind.
struct JobStorage<'w> {
    name: &'static str,
    node: Node<'w>,
    table: Table,
}

/// Returns SQLite in a folder of the world, and PostgreSQL if it is installed.
fn places<'w>(worlds: &'w [World; 2], arguments: &[&str]) -> Vec<JobStorage<'w>> {
    let [first, second] = worlds;
    let file = first.path().join("floor.db");
    let mut places = vec![JobStorage {
        name: "SQLite",
        node: Node::start(first, arguments),
        table: Table::in_file(&file),
    }];
    let server =
        Postgres::start_own().and_then(|server| Ok((server.database()?, server.database()?, server)));
    match server {
        Ok((of_node, bare, server)) => {
            let arguments = [arguments, &["--database", &of_node]].concat();
            places.push(JobStorage {
                name: "PostgreSQL",
                node: Node::start(second, &arguments),
                table: Table::on_server(&bare),
            });
            // The server ends with this process.
            std::mem::forget(server);
        }
        Err(why) => println!("\nPostgreSQL is not available ({why}): only SQLite is measured"),
    }
    places
}

fn submitted(mut job: Value) -> Vec<u8> {
    job["wait"] = json!(false);
    job.to_string().into_bytes()
}

/// Measures accepted jobs, one after another, while none is begun; and as many bare inserts.
pub(crate) fn submit(programs: &Programs) -> bool {
    const COUNT: usize = 300;
    println!("\n## submit: jobs accepted by one client, each on the disk when it is answered");
    let worlds = [(); 2].map(|()| World::new(programs.belljar()));
    let mut places = places(&worlds, &["--max-concurrency", "1", "--max-waiting", "1000000"]);
    for place in &places {
        // The blocker takes the node's only slot.
        let blocker = script("sleep 100000");
        place.node.submit(blocker.clone());
        place.node.wait_for(blocker["job_id"].as_str().expect("an id"), "in_progress");
    }
    let figures = hold(ROUNDS, places.len() * 2, |who| {
        let place = &mut places[who / 2];
        let mut took = match who % 2 {
            0 => {
                let mut client = Client::to(place.node.address(), TOKEN);
                let jobs: Vec<_> = (0..COUNT).map(|_| submitted(command(&["/bin/true"]))).collect();
                jobs.iter().map(|job| timed(|| assert_eq!(client.post(RUN, job), 202))).collect::<Vec<_>>()
            }
            _ => (0..COUNT).map(|_| timed(|| place.table.insert())).collect(),
        };
        took.sort_unstable_by(f64::total_cmp);
        (took[COUNT / 2], took[COUNT * 99 / 100])
    });
    println!("\n| | median ms | p99 ms |\n| --- | --- | --- |");
    let mut met = true;
    for (index, place) in places.iter().enumerate() {
        let [ours, bare] = [&figures[index * 2], &figures[index * 2 + 1]];
        for (what, figures) in [("a job accepted", ours), ("a bare insert", bare)] {
            let [middle, late] = [|of: &(f64, f64)| of.0, |of: &(f64, f64)| of.1]
                .map(|of| median(figures.iter().map(of)) * 1e3);
            println!("| {}, {what} | {middle:.2} | {late:.2} |", place.name);
        }
        let late = |figures: &[(f64, f64)]| figures.iter().map(|of| of.1).collect::<Vec<_>>();
        met &= judge(
            &format!("{}: p99 of a job accepted / of a bare insert", place.name),
            ratio(&late(ours), &late(bare)),
            GOAL,
        );
    }
    met
}

fn timed(act: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    act();
    begun.elapsed().as_secs_f64()
}

/// Measures jobs per second from the request to the response with the result, with four clients; and the floor of each.
pub(crate) fn jobs(programs: &Programs) -> bool {
    const COUNT: usize = 200;
    const CLIENTS: usize = 4;
    println!("\n## jobs: trivial jobs carried out, {CLIENTS} at a time");
    // Before this process has threads.
    let floor = BareBackend::new();
    let worlds = [(); 2].map(|()| World::new(programs.belljar()));
    let mut places = places(&worlds, &["--max-concurrency", "4"]);
    let figures = hold(ROUNDS, places.len() * 2, |who| {
        let place = &mut places[who / 2];
        let table = place.table.location();
        let begun = Instant::now();
        match who % 2 {
            0 => in_parallel(CLIENTS, COUNT, || {
                let mut client = Client::to(place.node.address(), TOKEN);
                move || assert_eq!(client.post(RUN, command(&["/bin/true"]).to_string().as_bytes()), 200)
            }),
            _ => in_parallel(CLIENTS, COUNT, || {
                let mut table = table.open();
                let floor = &floor;
                move || {
                    table.insert();
                    floor.sandbox();
                }
            }),
        }
        COUNT as f64 / begun.elapsed().as_secs_f64()
    });
    println!("\n| | a second |\n| --- | --- |");
    let mut met = true;
    for (index, place) in places.iter().enumerate() {
        let [ours, bare] = [&figures[index * 2], &figures[index * 2 + 1]];
        println!("| {}, jobs | {:.0} |", place.name, median(ours.iter().copied()));
        println!(
            "| {}, a bare insert and a bare sandbox | {:.0} |",
            place.name,
            median(bare.iter().copied())
        );
        met &= judge(&format!("{}: floors a second / jobs a second", place.name), ratio(bare, ours), GOAL);
    }
    met
}

/// Runs an action this many times in this many threads, each with an action of its own from `make`.
fn in_parallel<F: FnMut() + Send>(threads: usize, count: usize, make: impl Fn() -> F + Sync) {
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut act = make();
                while done.fetch_add(1, Ordering::Relaxed) < count {
                    act();
                }
            });
        }
    });
}
