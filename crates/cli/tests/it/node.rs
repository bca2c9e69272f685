//! `belljar node`: the Worker API, as an orchestrator uses it.

mod able;
mod agents;
mod answers;
mod asked;
mod billed;
mod billed_by_litellm;
mod bridged;
mod bridged_limits;
mod canceled;
mod carried_out;
mod connections;
mod context_files;
mod counted;
mod crowded;
mod described;
mod fetched;
mod followed;
mod followed_policy;
mod grants;
mod held_up;
mod images;
mod interrupted;
mod left;
mod managed;
mod many;
mod modeled;
mod operator;
mod planned;
mod planner_jobs;
mod ready;
mod refused;
mod reloaded;
pub(crate) mod remote_tools;
mod repaired;
mod reported;
mod sandbox_tools;
mod searched;
mod sessions;
mod slow;
mod stopped;
mod telling;
mod terminals;
mod told;
pub(crate) mod tools;
mod traces;
mod unreached;
mod web;

use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;

/// Runs a test with a database of each engine, given as `--database` and its value.
fn on_each_database(name: &str, test: impl Fn(&World, &[&str])) {
    test(&World::new(crate::BELLJAR), &[]);
    match Postgres::start().and_then(|server| server.database().map(|url| (server, url))) {
        Ok((_server, url)) => test(&World::new(crate::BELLJAR), &["--database", &url]),
        Err(why) => skip(name, &why),
    }
}

/// Returns the number of processes with this text in their command line.
fn processes_with(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}
