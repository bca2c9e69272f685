//! Paths to a provider that take turns under the same load.

use super::load::{LoadPart, LoadResult};
use super::part::Part;
use super::process::Process;
use super::socket::ListenerAddress;
use crate::rounds::{self, median};
use std::time::Duration;

/// One path.
pub(super) struct LoadPath<'a> {
    pub(super) name: &'a str,
    pub(super) target: &'a ListenerAddress,
    /// Processes between client and provider.
    pub(super) between: Vec<&'a Process>,
}

/// The load of a turn.
#[derive(Clone, Copy)]
pub(super) struct TurnLoad {
    pub(super) connections: usize,
    pub(super) lasts: Duration,
    pub(super) rounds: usize,
}

/// The figures of one path, in the order of the rounds.
#[derive(Default)]
pub(super) struct PathFigures {
    pub(super) a_second: Vec<f64>,
    pub(super) p50_us: Vec<f64>,
    pub(super) p99_us: Vec<f64>,
    /// Processor time per call of the processes between client and provider, in microseconds.
    pub(super) processor_us: Vec<f64>,
    pub(super) answered: usize,
}

// === impl TurnLoad ===

impl TurnLoad {
    /// Runs the rounds, and prints the results.
    pub(super) fn hold(self, title: &str, lanes: &[LoadPath<'_>]) -> Vec<PathFigures> {
        let figures = rounds::hold(self.rounds, lanes.len(), |who| self.one(&lanes[who]));
        println!("\n## {title}\n\n| | calls a second | p50 µs | p99 µs | processor µs a call |");
        println!("| --- | --- | --- | --- | --- |");
        let mut all = Vec::new();
        for (lane, of_lane) in lanes.iter().zip(figures) {
            let figures = of_lane.into_iter().fold(PathFigures::default(), PathFigures::with);
            let [a_second, p50, p99, processor] =
                [&figures.a_second, &figures.p50_us, &figures.p99_us, &figures.processor_us]
                    .map(|all| median(all.iter().copied()));
            println!("| {} | {a_second:.0} | {p50:.1} | {p99:.1} | {processor:.1} |", lane.name);
            all.push(figures);
        }
        all
    }

    fn one(self, lane: &LoadPath<'_>) -> (LoadResult, f64) {
        let busy = || lane.between.iter().map(|process| process.processor_time()).sum::<Duration>();
        let before = busy();
        let measured: LoadResult = Process::result(&Part::Load(LoadPart {
            target: lane.target.clone(),
            connections: self.connections,
            lasts: self.lasts,
            is_direct: lane.between.is_empty(),
        }));
        let processor = busy().saturating_sub(before).as_secs_f64() * 1e6 / measured.answered as f64;
        (measured, processor)
    }
}

// === impl PathFigures ===

impl PathFigures {
    fn with(mut self, (measured, processor_us): (LoadResult, f64)) -> Self {
        self.a_second.push(measured.a_second);
        self.p50_us.push(measured.p50_us);
        self.p99_us.push(measured.p99_us);
        self.processor_us.push(processor_us);
        self.answered += measured.answered;
        self
    }
}
