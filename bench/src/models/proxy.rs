//! Calls that are answered at once: calls per second with 64 connections, and the additional latency with one connection.

use super::house::ProxyProcess;
use super::message;
use super::nginx::{self, Nginx, Socat};
use super::part::Part;
use super::process::Process;
use super::socket::ListenerAddress;
use super::turns::{LoadPath, PathFigures, TurnLoad};
use super::upstream::Upstream;
use crate::Programs;
use crate::contest::missing;
use crate::rounds::{Goal, judge, median, ratio};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

const MANY: TurnLoad = TurnLoad { connections: 64, lasts: Duration::from_secs(2), rounds: 7 };
const ALONE: TurnLoad = TurnLoad { connections: 1, lasts: Duration::from_secs(1), rounds: 7 };

pub(crate) fn run(_: &Programs) -> bool {
    if let Some(peer) = nginx::missing(&["nginx", "socat"]) {
        return missing(peer);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_upstream, provider) = provider();
    let ours = ProxyProcess::start(folder.path(), provider, None);
    let nginx = Nginx::start(folder.path(), provider);
    let socat = Socat::start(&nginx);
    must_hold_models_against(&ours.socket);
    let direct = ListenerAddress::Tcp(provider);
    let lane = |name, target, between| LoadPath { name, target, between };
    let lanes = [
        lane("the provider itself", &direct, vec![]),
        lane("belljar, by a socket (one thread)", &ours.socket, vec![&ours.process]),
        lane("nginx, by a socket (one worker)", &nginx.socket, vec![&nginx.process]),
        lane("belljar, by a port", &ours.port, vec![&ours.process]),
        lane("nginx, by a port", &nginx.port, vec![&nginx.process]),
        lane("socat → nginx, by a port (a process each)", &socat.port, vec![&socat.process, &nginx.process]),
    ];
    let many = MANY.hold("proxy: 64 connections that are kept, headers added, the model checked", &lanes);
    let a_second = |ours: usize, theirs: usize| ratio(&many[ours].a_second, &many[theirs].a_second);
    let mut met = judge("by a socket: calls a second, belljar / nginx", a_second(1, 2), Goal::AtLeast(1.0));
    met &= judge("by a port: calls a second, belljar / nginx", a_second(3, 4), Goal::AtLeast(1.0));
    met &= judge("calls a second, belljar / socat → nginx", a_second(3, 5), Goal::AtLeast(2.2));
    println!("\nThe provider itself answers {:.1} times as many as belljar passes on.", a_second(0, 1));
    let alone = ALONE.hold("proxy: one connection", &lanes);
    added(&lanes, &alone);
    let more = |theirs: usize, ours: usize| {
        ratio(&beyond(&alone[ours], &alone[0]), &beyond(&alone[theirs], &alone[0]))
    };
    met &= judge(
        "by a socket: added latency of the median call, belljar / nginx",
        more(2, 1),
        Goal::AtMost(1.0),
    );
    met &=
        judge("by a port: added latency of the median call, belljar / nginx", more(4, 3), Goal::AtMost(1.0));
    met
}

/// Starts a provider that answers at once.
pub(super) fn provider() -> (Process, SocketAddr) {
    let mut upstream = Process::play(&Part::Upstream(Upstream));
    let address = upstream.hear();
    (upstream, address)
}

/// Checks that the proxy refuses other models: without that check the measurement would be another one.
fn must_hold_models_against(ours: &ListenerAddress) {
    let mut socket = ours.connect().expect("a connection");
    let call = String::from_utf8(message::call(false, false)).expect("text");
    socket.write_all(call.replace("\"small\"", "\"other\"").as_bytes()).expect("a connection");
    let mut status = [0; 12];
    socket.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 403", "the model isn't looked at");
}

/// Returns the additional latency of the median call compared with a direct one, in each round.
fn beyond(lane: &PathFigures, direct: &PathFigures) -> Vec<f64> {
    lane.p50_us.iter().zip(&direct.p50_us).map(|(lane, direct)| lane - direct).collect()
}

fn added(lanes: &[LoadPath<'_>], alone: &[PathFigures]) {
    println!("\n| | more than the provider itself, p50 µs |\n| --- | --- |");
    for (lane, figures) in lanes.iter().zip(alone).skip(1) {
        println!("| {} | {:.1} |", lane.name, median(beyond(figures, &alone[0])));
    }
}
