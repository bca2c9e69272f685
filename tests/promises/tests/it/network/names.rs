//! NT2: queries to resolvers, on every port and protocol that resolvers use.

use super::ip::{UNREACHABLE, connect, socket};
use crate::case::{Case, InsideExpectation, Script, args, internet};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::Argument;
use libc::SOCK_DGRAM;
use std::net::{IpAddr, SocketAddr};

/// Listeners in the place of resolvers: at the address that resolv.conf names on many systems, and at the ports of DNS, DNS
/// over TLS, multicast DNS and LLMNR.
const RESOLVERS: [&str; 6] = ["resolver", "local resolver", "port 53", "port 853", "port 5353", "port 5355"];

/// Well-known public resolvers, and multicast groups for queries.
const WELL_KNOWN: [(&str, u16); 5] =
    [("8.8.8.8", 53), ("9.9.9.9", 853), ("1.1.1.1", 443), ("224.0.0.251", 5353), ("224.0.0.252", 5355)];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, address) in scene.listeners.udp().filter(|(name, _)| RESOLVERS.contains(name)) {
        // The sandbox's own loopback accepts the query, and no listener of the host gets it.
        let case = Case::denied("NT2", format!("ask {name}"), ask(address, &scene.mark));
        cases.push(case.inside(InsideExpectation::Harmless).seen_by(format!("udp {name}")));
    }
    for (name, address) in scene.listeners.tcp().filter(|(name, _)| RESOLVERS.contains(name)) {
        let case = Case::denied("NT2", format!("ask {name} by TCP"), connect(address));
        cases.push(case.fails(UNREACHABLE).seen_by(format!("tcp {name}")));
    }
    for (address, port) in WELL_KNOWN {
        let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
        let mut script = socket(address, SOCK_DGRAM);
        let socket = script.first();
        let (to, length) = internet(address);
        script.call("connect", args![socket, to, length]);
        let case = Case::denied("NT2", format!("a way to {address}"), script).fails(UNREACHABLE);
        cases.push(case.needs("a way to other networks"));
    }
    cases
}

/// Returns a script with a query for the address of a unique name.
fn ask(address: SocketAddr, name: &str) -> Script {
    let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in [name, "example"] {
        question.push(label.len() as u8);
        question.extend(label.bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let length = question.len();
    let mut script = socket(address, SOCK_DGRAM);
    let socket = script.first();
    let (to, to_length) = internet(address);
    script.call("sendto", args![socket, Argument::Bytes(question), length, 0, to, to_length]);
    script
}
