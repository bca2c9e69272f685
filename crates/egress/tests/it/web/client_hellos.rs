//! PX6: first bytes of a tunnel, made by hand: a ClientHello for the tunnel's host, another protocol where the rules allow one;
//! otherwise none of them is sent.

use super::house::{ProxyRig, outcome};
use std::io::{Read, Write};
use std::net::Shutdown;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";
const NAMELESS: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8], sni: optional}\n";
const TLS_ALONE: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8], tls: required}\n";

const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;

/// Returns the content after a length prefix of that many bytes.
pub(super) fn counted(bytes: usize, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[4 - bytes..], content].concat()
}

pub(super) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(2, content)].concat()
}

/// Server name extension with these names and their types.
pub(super) fn names(names: &[(u8, &str)]) -> Vec<u8> {
    let entries = names.iter().map(|(kind, name)| [&[*kind][..], &counted(2, name.as_bytes())].concat());
    extension(SERVER_NAME, &counted(2, &entries.collect::<Vec<_>>().concat()))
}

pub(super) fn name(name: &str) -> Vec<u8> {
    names(&[(0, name)])
}

/// Outer part of an Encrypted Client Hello: a suite, a configuration, a key, and an encrypted payload.
fn encrypted() -> Vec<u8> {
    let content = [&[0, 0, 1, 0, 1, 7][..], &counted(2, &[9; 32]), &counted(2, &[5; 144])].concat();
    extension(ENCRYPTED_HELLO, &content)
}

/// TLS 1.3 ClientHello with these extensions besides the required ones, in records of that size.
fn greeting(more: &[Vec<u8>], record_bytes: usize) -> Vec<u8> {
    let key = [&[0, 0x1d][..], &counted(2, &[8; 32])].concat();
    let needed = [
        extension(43, &counted(1, &[3, 4])),
        extension(13, &counted(2, &[4, 3])),
        extension(10, &counted(2, &[0, 0x1d])),
        extension(51, &counted(2, &key)),
    ];
    let extensions = [&needed[..], more].concat().concat();
    let body = [
        &[3, 3][..],
        &[6; 32],
        &counted(1, &[]),
        &counted(2, &[0x13, 1]),
        &counted(1, &[0]),
        &counted(2, &extensions),
    ]
    .concat();
    let message = [&[1][..], &counted(3, &body)].concat();
    message
        .chunks(record_bytes)
        .map(|piece| [&[22, 3, 1][..], &counted(2, piece)].concat())
        .collect::<Vec<_>>()
        .concat()
}

/// Returns the result of a tunnel with this opening: whether all bytes came back, the record's outcome and its name.
fn sent(begins: &[u8]) -> (bool, String, Option<String>) {
    sent_by(ALLOWED, begins)
}

/// Returns the result of a tunnel with this opening by these rules.
fn sent_by(rules: &str, begins: &[u8]) -> (bool, String, Option<String>) {
    let house = ProxyRig::with(rules);
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let _ = tunnel.write_all(begins);
    let _ = tunnel.shutdown(Shutdown::Write);
    let mut heard = Vec::new();
    let _ = tunnel.read_to_end(&mut heard);
    let record = house.ledger.latest(1);
    let is_through = heard == begins;
    assert!(is_through || (heard.is_empty() && record.sent_bytes == 0), "{record:?}");
    belljar_testkit::wait::until(|| house.upstream.connections() == 1);
    (is_through, outcome(&record), record.tls_name.map(|name| name.as_str().to_owned()))
}

const ONE_RECORD: usize = 16 << 10;

#[test]
fn client_hello_for_the_requested_host_is_forwarded() {
    for (what, begins) in [
        ("as it is", greeting(&[name("up.test")], ONE_RECORD)),
        ("in capitals", greeting(&[name("UP.Test")], ONE_RECORD)),
        ("in records of a few bytes", greeting(&[name("up.test")], 7)),
        ("around an encrypted one", greeting(&[encrypted(), name("up.test")], ONE_RECORD)),
    ] {
        assert_eq!(sent(&begins), (true, "completed".to_owned(), Some("up.test".to_owned())), "{what}");
    }
}

#[test]
fn client_hello_for_another_host_ends_the_tunnel_unforwarded() {
    for other in ["other.test", "a.up.test", "up.test.evil.test", "evilup.test", "test"] {
        for begins in [
            greeting(&[name(other)], ONE_RECORD),
            greeting(&[name(other)], 7),
            greeting(&[name(other), encrypted()], ONE_RECORD),
        ] {
            let expected = (false, "failed: tls_name_mismatch".to_owned(), Some(other.to_owned()));
            assert_eq!(sent(&begins), expected, "{other}");
        }
    }
}

#[test]
fn ambiguous_client_hello_is_not_forwarded() {
    let long = "a".repeat(64 << 10);
    for (what, begins) in [
        ("two names", greeting(&[names(&[(0, "up.test"), (0, "other.test")])], ONE_RECORD)),
        ("two lists of names", greeting(&[name("up.test"), name("other.test")], ONE_RECORD)),
        ("an empty name", greeting(&[name("")], ONE_RECORD)),
        ("no names", greeting(&[names(&[])], ONE_RECORD)),
        ("a name with a zero", greeting(&[name("up.test\0.evil.test")], ONE_RECORD)),
        ("a name with a blank", greeting(&[name("up.test .evil.test")], ONE_RECORD)),
        ("a name that isn't ASCII", greeting(&[name("up.tést")], ONE_RECORD)),
        ("a list that is cut short", greeting(&[extension(SERVER_NAME, &[0, 20, 0, 0, 7])], ONE_RECORD)),
        ("nothing behind its first bytes", b"\x16\x03\x01\x00\x05hello".to_vec()),
        ("a record without a length", b"\x16\x03\x01\x00\x00\x16\x03\x01\x00\x00".to_vec()),
        (
            "an alert in between",
            [&greeting(&[name("up.test")], 40)[..45], b"\x15\x03\x01\x00\x02\x01\x00"].concat(),
        ),
        (
            "more than anybody says",
            greeting(&[extension(21, &long.as_bytes()[..64_900]), name("up.test")], 100),
        ),
    ] {
        let (is_through, outcome, _) = sent(&begins);
        assert!(!is_through && outcome == "failed: tls_malformed", "{what}: {is_through} {outcome}");
    }
}

#[test]
fn client_hello_without_sni_passes_only_if_the_rule_allows_it() {
    for (what, begins) in [
        ("TLS without a name", greeting(&[], ONE_RECORD)),
        ("an encrypted hello without an outer name", greeting(&[encrypted()], ONE_RECORD)),
    ] {
        assert_eq!(sent(&begins), (false, "failed: tls_name_missing".to_owned(), None), "{what}");
        assert_eq!(sent_by(NAMELESS, &begins), (true, "completed".to_owned(), None), "{what}");
    }
    // Control: the name of another host ends the tunnel by either rule.
    let (is_through, outcome, _) = sent_by(NAMELESS, &greeting(&[name("other.test")], ONE_RECORD));
    assert_eq!((is_through, outcome.as_str()), (false, "failed: tls_name_mismatch"));
}

#[test]
fn other_protocols_pass_unless_the_rule_requires_tls() {
    for (what, begins) in [
        ("a name of SSH", b"ssh-2.0-client\r\n".to_vec()),
        ("a preface of mail", b"ehlo other.test\r\n".to_vec()),
        ("zeros", vec![0; 100]),
    ] {
        assert_eq!(sent(&begins), (true, "completed".to_owned(), None), "{what}");
        assert_eq!(sent_by(TLS_ALONE, &begins), (false, "failed: tls_required".to_owned(), None), "{what}");
    }
    // Control.
    let begins = greeting(&[name("up.test")], ONE_RECORD);
    assert!(sent_by(TLS_ALONE, &begins).0);
}

/// Each of these stands before, or instead of, a ClientHello for the tunnel's own host. No server is asked what it would read
/// in it.
#[test]
fn tls_like_openings_other_than_one_client_hello_are_not_forwarded() {
    let whole = greeting(&[name("up.test")], ONE_RECORD);
    let other = greeting(&[name("other.test")], ONE_RECORD);
    let before = |prefix: &[u8]| [prefix, whole.as_slice()].concat();
    let version = |version: [u8; 2]| [&[22][..], &version, &whole[3..]].concat();
    let message = &whole[5..];
    let changed = |at: usize, byte: u8| {
        let mut changed = whole.clone();
        changed[at] = byte;
        changed
    };
    let sslv2 = |version: [u8; 2]| {
        let body = [&[1][..], &version, &[0, 3, 0, 0, 0, 16, 0, 0, 0x2f], &[7; 16]].concat();
        [&[0x80, body.len() as u8][..], &body].concat()
    };
    for (what, begins) in [
        ("a warning", before(&[21, 3, 1, 0, 2, 1, 0])),
        ("a warning about a name", before(&[21, 3, 3, 0, 2, 1, 112])),
        ("a fatal alert", before(&[21, 3, 3, 0, 2, 2, 40])),
        ("a warning of version 2.1", before(&[21, 2, 1, 0, 2, 1, 0])),
        ("an alert in two records", before(&[21, 3, 3, 0, 1, 1, 21, 3, 3, 0, 1, 0])),
        ("a ChangeCipherSpec", before(&[20, 3, 3, 0, 1, 1])),
        ("a ChangeCipherSpec of SSL 3.0", before(&[20, 3, 0, 0, 1, 1])),
        ("encrypted data", before(&[23, 3, 3, 0, 4, 1, 2, 3, 4])),
        ("a heartbeat", before(&[24, 3, 3, 0, 4, 1, 0, 1, 0])),
        ("a record of no known type", before(&[30, 3, 3, 0, 1, 0])),
        ("an empty record", before(&[22, 3, 1, 0, 0])),
        ("a HelloRequest", before(&[22, 3, 1, 0, 4, 0, 0, 0, 0])),
        ("records of SSL 3.0", version([3, 0])),
        ("records of version 3.4", version([3, 4])),
        ("records of version 3.9", version([3, 9])),
        ("records of version 2.1", version([2, 1])),
        ("records of version 9.1", version([9, 1])),
        ("records of DTLS 1.2", version([0xfe, 0xfd])),
        ("records of DTLS 1.0", version([0xfe, 0xff])),
        ("a hello of SSL 2.0", sslv2([0, 2])),
        ("a hello of SSL 2 for TLS 1.2", sslv2([3, 3])),
        ("a hello of SSL 2 for TLS 1.0 and another one behind", [sslv2([3, 1]), other.clone()].concat()),
        ("a version of SSL 3.0 in the hello", changed(10, 0)),
        ("a version of TLS 1.3 in the hello", changed(10, 4)),
        ("another message", changed(5, 2)),
        ("a length beyond the record", [&whole[..], &[0; 3]].concat()[..whole.len() - 1].to_vec()),
        ("two hellos in one record", {
            let both = [message, &other[5..]].concat();
            [&[22, 3, 1][..], &counted(2, &both)].concat()
        }),
        (
            "more behind the hello in its record",
            [&[22, 3, 1][..], &counted(2, &[message, &[0]].concat())].concat(),
        ),
        ("an alert between its records", {
            let halves = greeting(&[name("up.test")], 80);
            [&halves[..85], &[21, 3, 3, 0, 2, 1, 0], &halves[85..]].concat()
        }),
        (
            "an inner encrypted hello",
            greeting(&[extension(ENCRYPTED_HELLO, &[1]), name("up.test")], ONE_RECORD),
        ),
        (
            "an extension twice",
            greeting(&[extension(16, &[0, 0]), extension(16, &[0, 0]), name("up.test")], ONE_RECORD),
        ),
    ] {
        for rules in [ALLOWED, NAMELESS] {
            let (is_through, outcome, _) = sent_by(rules, &begins);
            assert_eq!((is_through, outcome.as_str()), (false, "failed: tls_malformed"), "{what}");
        }
    }
}

#[test]
fn client_hello_after_a_database_starttls_request_is_checked() {
    let request = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    for (host, expected) in [("up.test", "completed"), ("other.test", "failed: tls_name_mismatch")] {
        let house = ProxyRig::with(ALLOWED);
        let mut tunnel = house.tunnel("up.test:PORT").unwrap();
        tunnel.write_all(&request).unwrap();
        let mut echoed = [0; 8];
        tunnel.read_exact(&mut echoed).unwrap();
        tunnel.write_all(&greeting(&[name(host)], ONE_RECORD)).unwrap();
        let _ = tunnel.shutdown(Shutdown::Write);
        let _ = tunnel.read_to_end(&mut Vec::new());
        assert_eq!(outcome(&house.ledger.latest(1)), expected, "{host}");
    }
}
