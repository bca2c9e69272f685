//! A node that is killed at any place: no accepted job is lost, each ends exactly once, and no leftovers remain.
//!
//! The node kills itself at a named fail point (`belljar-failpoint`), or is killed at any moment by `kill -9` from
//! outside. Then it is started again, its client repeats each request that got no response, and one checker examines
//! everything: the node's responses, its state directory, the callbacks that the orchestrator received, and the running
//! processes.

mod applies;
mod approvals;
mod checker;
mod client;
mod director;
mod ground;
mod moments;
mod outages;
mod places;
mod pushes;
mod server;
mod victims;
mod witness;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of kills at each place.
const TIMES: usize = 20;

/// Number of nodes at a time. They wait more than they work.
const AT_ONCE: usize = 3;

/// Returns the places before and after writes, and others; only one of them if a variable selects it for an
/// investigation.
fn places(writes: &[&str], others: &[&str]) -> Vec<String> {
    let writes = writes.iter().flat_map(|write| [format!("{write}.before"), format!("{write}.after")]);
    let places = writes.chain(others.iter().map(|&other| other.to_owned()));
    let only = std::env::var("BELLJAR_FAULTS_PLACE").ok();
    places.filter(|place| only.as_ref().is_none_or(|only| only == place)).collect()
}

/// Calls a function with each item, several at a time, each thread with state of its own. Returns the sum of the
/// results.
fn by_several<T: Sync, O>(
    all: &[T],
    own: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, &T) -> usize + Sync,
) -> usize {
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all.len()) {
            scope.spawn(|| {
                let mut own = own();
                while let Some(one) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let came_to = work(&mut own, one);
                    *sum.lock().unwrap() += came_to;
                }
            });
        }
    });
    sum.into_inner().unwrap()
}

/// Prints a result on a line of its own, which `scripts/test` shows. The test runner may have printed part of a line
/// before.
fn tell(what: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("\nfaults: {what}\n").as_bytes());
}

/// Pseudo-random numbers that are reproducible from the seed.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, most: u64) -> u64 {
        // Xorshift: good enough to spread the kills.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
