//! PX6: what a tunnel begins with, made by hand, as no library would: it goes to the host that was asked for, or nowhere.

use super::house::{House, outcome};
use std::io::{Read, Write};
use std::net::Shutdown;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;

/// What is behind a length of so many bytes.
fn counted(bytes: usize, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[4 - bytes..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(2, content)].concat()
}

/// The extension with these names, each of that kind.
fn names(names: &[(u8, &str)]) -> Vec<u8> {
    let entries = names.iter().map(|(kind, name)| [&[*kind][..], &counted(2, name.as_bytes())].concat());
    extension(SERVER_NAME, &counted(2, &entries.collect::<Vec<_>>().concat()))
}

fn name(name: &str) -> Vec<u8> {
    names(&[(0, name)])
}

/// The outer side of an encrypted greeting: a suite, a configuration, a key, and what nobody can read.
fn encrypted() -> Vec<u8> {
    let content = [&[0, 0, 1, 0, 1, 7][..], &counted(2, &[9; 32]), &counted(2, &[5; 144])].concat();
    extension(ENCRYPTED_HELLO, &content)
}

/// A greeting of version 1.3 with these extensions besides those that it must have, as records of so many bytes.
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

/// What became of a tunnel that begins so: whether everything has come back, the record's outcome and its name.
fn sent(begins: &[u8]) -> (bool, String, Option<String>) {
    let house = House::with(ALLOWED);
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
fn a_greeting_for_the_host_that_was_asked_for_gets_through_however_it_is_cut() {
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
fn a_greeting_for_another_host_ends_the_tunnel_before_any_of_it_goes_on() {
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
fn what_begins_as_tls_and_could_be_read_in_two_ways_goes_nowhere() {
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

/// Nobody looks into a tunnel: what is recorded is that no name was said.
#[test]
fn a_tunnel_without_a_name_goes_to_the_host_that_was_asked_for_and_is_recorded_without_one() {
    for (what, begins) in [
        ("TLS without a name", greeting(&[], ONE_RECORD)),
        ("an encrypted greeting without a name", greeting(&[encrypted()], ONE_RECORD)),
        ("a name of SSH", b"ssh-2.0-client\r\n".to_vec()),
        ("a preface of mail", b"ehlo other.test\r\n".to_vec()),
        ("zeros", vec![0; 100]),
    ] {
        assert_eq!(sent(&begins), (true, "completed".to_owned(), None), "{what}");
    }
}
