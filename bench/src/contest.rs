//! Several contestants that take turns, and their times.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One contestant: the action that is timed, and an untimed preparation before each turn.
pub(crate) struct Contestant<'a> {
    pub(crate) name: &'a str,
    pub(crate) prepare: Box<dyn FnMut() + 'a>,
    pub(crate) turn: Box<dyn FnMut() + 'a>,
}

/// The times of one contestant, sorted.
pub(crate) struct Times {
    pub(crate) name: String,
    pub(crate) sorted: Vec<Duration>,
}

// === impl Contestant ===

impl<'a> Contestant<'a> {
    /// Returns a contestant that runs a command and waits for it. Its output is discarded.
    pub(crate) fn command(name: &'a str, make: impl Fn() -> Command + 'a) -> Self {
        let turn = move || {
            let status = make().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(status.expect("a program that starts").success(), "{name} failed");
        };
        Self { name, prepare: Box::new(|| ()), turn: Box::new(turn) }
    }

    /// Adds a preparation before each turn.
    pub(crate) fn prepared(mut self, prepare: impl FnMut() + 'a) -> Self {
        self.prepare = Box::new(prepare);
        self
    }
}

// === impl Times ===

impl Times {
    pub(crate) fn median(&self) -> Duration {
        self.sorted[self.sorted.len() / 2]
    }

    fn at(&self, per_cent: usize) -> Duration {
        self.sorted[(self.sorted.len() - 1) * per_cent / 100]
    }
}

/// Lets the contestants take turns, after three warm-up turns each, and prints their times.
pub(crate) fn hold(title: &str, turns: usize, mut contestants: Vec<Contestant<'_>>) -> Vec<Times> {
    const WARM_UP: usize = 3;
    let mut times: Vec<Times> =
        contestants.iter().map(|one| Times { name: one.name.to_owned(), sorted: Vec::new() }).collect();
    for turn in 0..turns + WARM_UP {
        for place in 0..contestants.len() {
            // The order changes from round to round.
            let who = (place + turn) % contestants.len();
            let contestant = &mut contestants[who];
            (contestant.prepare)();
            let begun = Instant::now();
            (contestant.turn)();
            let took = begun.elapsed();
            if turn >= WARM_UP {
                times[who].sorted.push(took);
            }
        }
    }
    println!("\n## {title}\n\n| | median ms | p90 ms | p99 ms | min ms |\n| --- | --- | --- | --- | --- |");
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    for one in &mut times {
        one.sorted.sort_unstable();
        let [p90, p99, min] = [90, 99, 0].map(|per_cent| ms(one.at(per_cent)));
        println!("| {} | {:.2} | {p90:.2} | {p99:.2} | {min:.2} |", one.name, ms(one.median()));
    }
    times
}

/// Prints the ratio of the first to the second. Returns true if it meets the goal.
pub(crate) fn judge(ours: &Times, theirs: &Times, goal: f64) -> bool {
    let ratio = ours.median().as_secs_f64() / theirs.median().as_secs_f64();
    let verdict = if ratio <= goal { "met" } else { "MISSED" };
    crate::history::note(ratio, ratio <= goal);
    println!("\n{} / {} = **{ratio:.2}** (goal: at most {goal}): {verdict}", ours.name, theirs.name);
    ratio <= goal
}

/// Prints that a peer isn't installed, and returns false.
pub(crate) fn missing(peer: &str) -> bool {
    println!("\n{peer} is not installed: nothing to compare with");
    false
}
