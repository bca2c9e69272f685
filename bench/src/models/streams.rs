//! Memory of the proxy during a thousand concurrent streamed responses.

use super::house::ProxyProcess;
use super::message::StreamPiece;
use super::nginx::{self, Nginx};
use super::part::Part;
use super::process::Process;
use super::socket::ListenerAddress;
use super::source::StreamSource;
use super::visitors::ReadingClients;
use crate::Programs;
use crate::contest::missing;
use crate::rounds::{Goal, judge};
use std::net::SocketAddr;
use std::time::Duration;

const COUNT: usize = 1_000;

/// Many events at once, so that buffers fill, and then one event per second.
const SOURCE: StreamSource = StreamSource {
    piece: StreamPiece::LiteLlm,
    at_once: 400,
    in_one_write: 400,
    one_by_one: usize::MAX,
    gap: Duration::from_secs(1),
};

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = nginx::missing(&["nginx"]) {
        return missing(peer);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut provider = Process::play(&Part::Source(SOURCE));
    let address: SocketAddr = provider.hear();
    let ours = ProxyProcess::start(folder.path(), address, None);
    let nginx = Nginx::start(folder.path(), address);
    let [mine, theirs] =
        [(&ours.socket, &ours.process), (&nginx.socket, &nginx.process)].map(|(target, process)| {
            let before = process.pss_kib();
            (before, visited(target, process))
        });
    println!("\n## streams: memory (PSS) with {COUNT} streamed answers under way\n");
    println!("| | with none, KiB | KiB | each, KiB |\n| --- | --- | --- | --- |");
    for (name, (before, after)) in [("belljar", mine), ("nginx, master and worker", theirs)] {
        println!("| {name} | {before} | {after} | {:.1} |", (after - before) as f64 / COUNT as f64);
    }
    judge("MiB of belljar", mine.1 as f64 / 1024.0, Goal::AtMost(150.0))
}

/// Returns the memory of the process while all streams are open.
fn visited(target: &ListenerAddress, process: &Process) -> usize {
    // Also some of the events that come one second apart.
    let bytes = (SOURCE.at_once + 3) * SOURCE.piece.event().len();
    let visitors = ReadingClients { target: target.clone(), connections: COUNT, bytes };
    let mut visitors = Process::play(&Part::Visitors(visitors));
    let got: usize = visitors.hear();
    assert!(got >= COUNT * bytes, "streams are missing");
    let pss = process.pss_kib();
    visitors.end();
    pss
}
