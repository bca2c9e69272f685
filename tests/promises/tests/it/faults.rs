//! A node that is killed wherever it may be killed: no accepted job is lost, each ends once, and nothing of it is left.
//!
//! It dies by its own hand at a place that is named (`belljar-failpoint`), or at any moment by a `kill -9` from outside. Then it is
//! started again, its client says again what it had no answer to, and one checker looks at everything: what the node says, what
//! lies in its state, what the orchestrator has heard, what still runs.

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

/// Somebody dies so often at each place.
const TIMES: usize = 20;

/// Nodes at a time. They wait more than they work.
const AT_ONCE: usize = 3;

/// Places before and after writes, and others; only one of them for whoever looks into that.
fn places(writes: &[&str], others: &[&str]) -> Vec<String> {
    let writes = writes.iter().flat_map(|write| [format!("{write}.before"), format!("{write}.after")]);
    let places = writes.chain(others.iter().map(|&other| other.to_owned()));
    let only = std::env::var("BELLJAR_FAULTS_PLACE").ok();
    places.filter(|place| only.as_ref().is_none_or(|only| only == place)).collect()
}

/// Does something with each of them, several at a time, each of which has something of its own. The sum of what it comes to.
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

/// Tells what a harness did, on a line of its own, which `scripts/test` shows: whoever runs tests may be in the middle of one.
fn tell(what: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("\nfaults: {what}\n").as_bytes());
}

/// Numbers that look like chance, and are the same again for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        // Xorshift: good enough to spread kills.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
