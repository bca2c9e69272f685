//! Tests of DNS rebinding: names that lead elsewhere now, later, sometimes, or nowhere.

use super::house::{ProxyRig, UP, leads, outcome};
use crate::names::nameserver::Entry;
use hickory_resolver::proto::op::ResponseCode;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Rule for the name without a private network.
const OPEN: &str = "- {host: up.test, ports: [PORT]}\n";
const GRANTED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

fn all(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

#[test]
fn hostname_with_any_forbidden_address_is_refused_and_not_dialed() {
    let open = "93.184.216.34";
    let many: Vec<String> = (0..65).map(|last| format!("93.184.216.{last}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases: Vec<(Entry, &str)> = vec![
        (leads(&["127.0.0.1"]), "loopback_address"),
        (leads(&["::1"]), "loopback_address"),
        (leads(&["::ffff:127.0.0.1"]), "loopback_address"),
        (leads(&[open, "127.0.0.1"]), "loopback_address"),
        (leads(&["127.0.0.1", open]), "loopback_address"),
        (leads(&[open, "::1"]), "loopback_address"),
        (leads(&[open, "fd00::1"]), "private_address"),
        (leads(&["10.0.0.1"]), "private_address"),
        (leads(&["169.254.169.254"]), "link_local_address"),
        (leads(&["64:ff9b::a9fe:a9fe"]), "link_local_address"),
        (leads(&["100.100.100.200"]), "metadata_address"),
        (leads(&["0.0.0.0"]), "unspecified_address"),
        (leads(&["2002:7f00:1::"]), "tunnel_address"),
        (leads(&["224.0.0.1"]), "multicast_address"),
        (leads(&many), "too_many_addresses"),
        (Entry::IsAnother("inside.test", "127.0.0.1".parse().unwrap()), "loopback_address"),
        (Entry::LeadsAndIsSilent(all(&["192.168.0.1"])), "private_address"),
    ];
    assert!(cases.len() >= 16);
    for (number, (entry, reason)) in cases.into_iter().enumerate() {
        let house = ProxyRig::with(OPEN);
        house.names.set(vec![(UP, entry.clone())]);
        let denied = house.tunnel("up.test:PORT").unwrap_err();
        assert_eq!((denied.status, denied.code()), (403, "address_not_allowed"), "{number}: {entry:?}");
        assert_eq!(outcome(&house.ledger.latest(1)), format!("denied: {reason}"), "{entry:?}");
        assert_eq!(house.get("http://up.test:PORT/").code(), "address_not_allowed");
        assert_eq!(house.upstream.connections(), 0, "{entry:?}");
    }
}

#[test]
fn checked_address_is_dialed_without_a_second_lookup() {
    let house = ProxyRig::with(GRANTED);
    assert!(house.tunnel("up.test:PORT").is_ok());
    // One question for each address type.
    assert_eq!(house.names.asked(), 2);
    // From the next question on it leads elsewhere.
    house.names.set(vec![(UP, leads(&["169.254.169.254"]))]);
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "address_not_allowed");
    assert_eq!((house.names.asked(), house.upstream.connections()), (4, 1));
    house.names.set(vec![(UP, leads(&["127.0.0.1"]))]);
    assert!(house.tunnel("up.test:PORT").is_ok());
}

/// The first question leads to the upstream, all later ones to another server of this machine.
#[test]
fn dns_rebinding_does_not_change_the_dialed_address() {
    let house = ProxyRig::with(GRANTED);
    let port = house.upstream.address.port();
    let trap = std::net::TcpListener::bind(("127.0.0.2", port)).unwrap();
    trap.set_nonblocking(true).unwrap();
    house.names.set(vec![(UP, Entry::Flips([127, 0, 0, 1].into(), [127, 0, 0, 2].into()))]);
    assert!(house.tunnel("up.test:PORT").is_ok());
    assert_eq!((house.names.asked(), house.upstream.connections()), (2, 1));
    assert!(trap.accept().is_err(), "it was dialed where a second question would have led");
    // Control: it does lead there now.
    assert!(house.tunnel("up.test:PORT").is_ok());
    assert!(trap.accept().is_ok());
}

#[test]
fn malformed_dns_answers_are_refused() {
    let cut: fn(Vec<u8>) -> Vec<u8> = |answer| answer[..answer.len() - 3].to_vec();
    // The first name in the answer is a compression pointer to itself.
    let looping: fn(Vec<u8>) -> Vec<u8> = |mut answer| {
        let at = 12 + UP.len() + 2 + 4;
        answer.splice(at..at + 2, [0xc0, at as u8]);
        answer
    };
    let other_id: fn(Vec<u8>) -> Vec<u8> = |mut answer| {
        answer[0] ^= 0xff;
        answer
    };
    let many: fn(Vec<u8>) -> Vec<u8> = |mut answer| {
        // The header states more records than there are.
        answer[6..8].copy_from_slice(&[0xff, 0xff]);
        answer
    };
    let truncated: fn(Vec<u8>) -> Vec<u8> = |mut answer| {
        answer[2] |= 2;
        answer
    };
    let cases = [
        ("a failure", Entry::Refuses(ResponseCode::ServFail)),
        ("a refusal", Entry::Refuses(ResponseCode::Refused)),
        ("a name for itself", Entry::IsItself),
        ("half an answer", Entry::Garbled(cut)),
        ("a name that never ends", Entry::Garbled(looping)),
        ("an answer with another id", Entry::Garbled(other_id)),
        ("more than there is", Entry::Garbled(many)),
        ("a truncated answer", Entry::Garbled(truncated)),
    ];
    for (what, entry) in cases {
        let house = ProxyRig::with(OPEN);
        house.names.set(vec![(UP, entry)]);
        let told = house.tunnel("up.test:PORT").unwrap_err();
        assert!(["no_such_host", "name_timeout"].contains(&told.code()), "{what}: {told:?}");
        assert_eq!((told.status / 100, house.upstream.connections()), (5, 0), "{what}");
    }
}

#[test]
fn unknown_hostname_is_reported_as_no_such_host() {
    let house = ProxyRig::with(GRANTED);
    house.names.set(vec![]);
    let told = house.tunnel("up.test:PORT").unwrap_err();
    assert_eq!((told.status, told.code()), (502, "no_such_host"));
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: no_such_host");
}

#[test]
fn silent_name_server_times_out() {
    let house = ProxyRig::with(GRANTED);
    house.names.set(vec![(UP, Entry::IsSilent)]);
    let begun = Instant::now();
    let told = house.tunnel("up.test:PORT").unwrap_err();
    assert_eq!((told.status, told.code()), (504, "name_timeout"));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(house.upstream.connections(), 0);
}
