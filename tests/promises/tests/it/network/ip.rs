//! NT1: TCP, UDP and ICMP to every kind of address, at every kind of port.

use crate::case::{Case, ControlPlacement, InsideExpectation, Script, args, internet, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{
    AF_INET, AF_INET6, EACCES, EADDRNOTAVAIL, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, SOCK_DGRAM, SOCK_RAW,
    SOCK_STREAM,
};
use std::net::{IpAddr, SocketAddr};

/// Errnos for a connection to an address that doesn't exist or is unreachable.
pub(super) const UNREACHABLE: &[i32] = &[ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EACCES];

/// Addresses outside of the host: documentation, public, private and link-local ones, and the metadata services of clouds.
const OTHERS: [&str; 11] = [
    "198.51.100.1",
    "8.8.8.8",
    "1.1.1.1",
    "10.0.0.1",
    "172.17.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.251",
    "2001:4860:4860::8888",
    "fd00:ec2::254",
];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, address) in scene.listeners.tcp() {
        let case = Case::denied("NT1", format!("TCP to {name}"), connect(address));
        cases.push(case.fails(UNREACHABLE).seen_by(format!("tcp {name}")));
    }
    for (name, address) in scene.listeners.udp() {
        let mut script = socket(address, SOCK_DGRAM);
        let socket = script.first();
        let (to, length) = internet(address);
        script.call("sendto", args![socket, &scene.mark, 16, 0, to, length]);
        // The sandbox's own loopback accepts any datagram; the verdict depends on whether the host's listener got it.
        let has_ipv6 = scene.engine.is_none();
        let own_loopback = address.ip().is_loopback() && (address.is_ipv4() || has_ipv6);
        let case = Case::denied("NT1", format!("UDP to {name}"), script).seen_by(format!("udp {name}"));
        cases.push(match own_loopback {
            true => case.inside(InsideExpectation::Harmless),
            false => case.fails(UNREACHABLE),
        });
    }
    for address in OTHERS.map(|address| address.parse::<IpAddr>().unwrap()) {
        // Connecting a datagram socket sends nothing; it only looks up the route.
        let mut script = socket(SocketAddr::new(address, 9), SOCK_DGRAM);
        let socket = script.first();
        let (to, length) = internet(SocketAddr::new(address, 9));
        script.call("connect", args![socket, to, length]);
        let case = Case::denied("NT1", format!("a way to {address}"), script).fails(UNREACHABLE);
        cases.push(case.needs("a way to other networks"));
    }
    for (name, family, protocol) in
        [("ICMP", AF_INET, libc::IPPROTO_ICMP), ("ICMPv6", AF_INET6, libc::IPPROTO_ICMPV6)]
    {
        let case = Case::call("NT1", name, "socket", args![family, SOCK_RAW, protocol]);
        cases.push(case.fails(&[libc::EAFNOSUPPORT]).by(ControlPlacement::Root));
    }
    cases
}

/// Returns a script that connects by TCP, and waits at most two seconds.
pub(super) fn connect(address: SocketAddr) -> Script {
    let mut script = socket(address, SOCK_STREAM);
    let socket = script.first();
    let patience = words(args![2, 0]);
    script.call("setsockopt", args![socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, patience, 16]);
    let (to, length) = internet(address);
    script.call("connect", args![socket, to, length]);
    script
}

pub(super) fn socket(address: SocketAddr, kind: i32) -> Script {
    let family = if address.is_ipv4() { AF_INET } else { AF_INET6 };
    Script::one("socket", args![family, kind, 0])
}
