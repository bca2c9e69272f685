//! Streamed responses: the additional delay of each event, and the time of many events at full speed.

use super::house::ProxyProcess;
use super::listener::{ListenerFigures, StreamListener};
use super::message::StreamPiece;
use super::nginx::{self, Nginx};
use super::part::Part;
use super::process::Process;
use super::socket::ListenerAddress;
use super::source::StreamSource;
use crate::Programs;
use crate::contest::missing;
use crate::rounds::{self, Goal, judge, median, ratio};
use std::net::SocketAddr;
use std::time::Duration;

const ROUNDS: usize = 7;

/// One event per millisecond.
const PACED: StreamSource = StreamSource {
    piece: StreamPiece::LiteLlm,
    at_once: 0,
    in_one_write: 1,
    one_by_one: 2_000,
    gap: Duration::from_millis(1),
};

/// Full speed: a provider that batches events, one with `"usage":null` in every event, and one that writes each event
/// separately.
const FAST: [(&str, StreamSource); 3] = [
    ("64 events in one write", StreamSource { at_once: 20_000, in_one_write: 64, one_by_one: 0, ..PACED }),
    (
        "the same, each with `\"usage\":null`",
        StreamSource {
            piece: StreamPiece::OpenAi,
            at_once: 20_000,
            in_one_write: 64,
            one_by_one: 0,
            ..PACED
        },
    ),
    ("one event in one write", StreamSource { at_once: 20_000, in_one_write: 1, one_by_one: 0, ..PACED }),
];

/// Number of responses per turn.
const AT_A_TURN: usize = 5;

/// A provider, and the paths to it.
struct ProviderPaths {
    source: StreamSource,
    _provider: Process,
    targets: [ListenerAddress; 3],
    _ours: ProxyProcess,
    _nginx: Nginx,
    _folder: tempfile::TempDir,
}

const NAMES: [&str; 3] = ["the provider itself", "belljar", "nginx"];

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = nginx::missing(&["nginx"]) {
        return missing(peer);
    }
    // All are judged, even if one has missed its goal.
    let paced = paced();
    FAST.into_iter().map(|(how, source)| fast(how, source)).fold(paced, |all, met| all & met)
}

fn paced() -> bool {
    let ways = ProviderPaths::to(PACED);
    let heard = rounds::hold(ROUNDS, NAMES.len(), |who| {
        let heard = ways.hear(who, 1);
        (heard.delay.expect("stamps"), heard.reads)
    });
    println!(
        "\n## stream: from the provider's clock to the client's, one event each millisecond, by a socket\n"
    );
    println!("| | p50 µs | p99 µs |\n| --- | --- | --- |");
    for (name, of_one) in NAMES.iter().zip(&heard) {
        let p50 = median(of_one.iter().map(|(delay, _)| delay.p50_us));
        let p99 = median(of_one.iter().map(|(delay, _)| delay.p99_us));
        println!("| {name} | {p50:.1} | {p99:.1} |");
    }
    let p99 = |who: usize| heard[who].iter().map(|(delay, _)| delay.p99_us).collect::<Vec<_>>();
    judge("p99 of the delay, belljar / nginx", ratio(&p99(1), &p99(2)), Goal::AtMost(1.0))
}

fn fast(how: &str, source: StreamSource) -> bool {
    let ways = ProviderPaths::to(source);
    let heard = rounds::hold(ROUNDS, NAMES.len(), |who| {
        let heard = ways.hear(who, AT_A_TURN);
        (median(heard.whole_ms), heard.reads / AT_A_TURN)
    });
    println!("\n## stream: 20,000 events at full speed, {how}\n");
    println!("| | median ms | reads of the client |\n| --- | --- | --- |");
    for (name, of_one) in NAMES.iter().zip(&heard) {
        let ms = median(of_one.iter().map(|(ms, _)| *ms));
        println!("| {name} | {ms:.1} | {:.0} |", median(of_one.iter().map(|(_, reads)| *reads as f64)));
    }
    let ms = |who: usize| heard[who].iter().map(|(ms, _)| *ms).collect::<Vec<_>>();
    judge("time, belljar / nginx", ratio(&ms(1), &ms(2)), Goal::AtMost(1.2))
}

// === impl ProviderPaths ===

impl ProviderPaths {
    fn to(source: StreamSource) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut provider = Process::play(&Part::Source(source.clone()));
        let address: SocketAddr = provider.hear();
        let ours = ProxyProcess::start(folder.path(), address, None);
        let nginx = Nginx::start(folder.path(), address);
        let targets = [ListenerAddress::Tcp(address), ours.socket.clone(), nginx.socket.clone()];
        Self { source, _provider: provider, targets, _ours: ours, _nginx: nginx, _folder: folder }
    }

    fn hear(&self, who: usize, times: usize) -> ListenerFigures {
        Process::result(&Part::Listener(StreamListener {
            target: self.targets[who].clone(),
            piece: self.source.piece,
            events: self.source.at_once + self.source.one_by_one,
            times,
            is_direct: who == 0,
        }))
    }
}
