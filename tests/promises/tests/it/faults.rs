//! A node that is killed wherever it may be killed: no accepted job is lost, each ends once, and nothing of it is left.
//!
//! It dies by its own hand at a place that is named (`belljar-failpoint`), or at any moment by a `kill -9` from outside. Then it is
//! started again, its client says again what it had no answer to, and one checker looks at everything: what the node says, what
//! lies in its state, what the orchestrator has heard, what still runs.

mod checker;
mod client;
mod moments;
mod places;
mod server;
mod witness;

/// Tells what a harness did, on a line of its own, which `scripts/test` shows.
fn tell(what: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("faults: {what}\n").as_bytes());
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
