//! What upstreams answer, told wrongly, cut, or with more than there should be; over plain HTTP, and where connections are looked
//! into.

use super::ALLOWED;
use crate::tls::authority::{Authority, NOW};
use crate::web::house::{House, UP, outcome};
use crate::web::upstream::Then;
use std::io::{Read, Write};

/// What becomes of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Becomes {
    /// The client is told that it can't be understood, and sees nothing of it.
    Refused,
    /// The client gets its beginning, is not told that it is whole, and that is recorded.
    Cut(&'static str, &'static str),
    /// The client gets that, whole, and nothing more.
    Whole(&'static str),
}
use Becomes::{Cut, Refused, Whole};

/// To a `GET`, and then the upstream is gone.
pub(super) const ANSWERS: &[(&str, Becomes)] = &[
    // Gone before a head, and within one.
    ("", Refused),
    ("HTTP/1.1", Refused),
    ("HTTP/1.1 200 OK\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: ", Refused),
    // Heads that say two things of one length.
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Refused,
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello", Refused),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 204 No\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello", Refused),
    // Heads that are none.
    ("hello", Refused),
    ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\n: 5\r\n\r\nhello", Refused),
    ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 2O0 OK\r\nContent-Length: 5\r\n\r\nhello", Refused),
    // Another protocol, which nobody has asked for; and what goes on without an end, or with a body that it can't have.
    ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello", Refused),
    (
        "HTTP/1.1 103 Early\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Refused,
    ),
    ("HTTP/1.1 100 Continue\r\n\r\n", Refused),
    // Less than was said.
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Cut("", "answer_cut")),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Cut("hell", "answer_cut")),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Cut("", "answer_cut")),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5", Cut("5", "answer_cut")),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", Cut("5\r\nhe", "answer_cut")),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        Cut("5\r\nhello\r\n", "answer_cut"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        Cut("5\r\nhello\r\n0\r\n", "answer_cut"),
    ),
    // Chunks that are none.
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", Cut("", "answer_malformed")),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        Cut("", "answer_malformed"),
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", Cut("hello", "answer_cut")),
    // More than was said: another answer, or whatever it is, is nobody's.
    ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello", Whole("hel")),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nhello", Whole("")),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother",
        Whole("hello"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nother",
        Whole("5\r\nhello\r\n0\r\n\r\n"),
    ),
    // Answers that have no body, whatever they say.
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", Whole("")),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Whole("")),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", Whole("")),
    ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Whole("")),
    // Until the end, and behind what only says to go on.
    ("HTTP/1.1 200 OK\r\n\r\nhello", Whole("hello")),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello", Whole("hello")),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", Whole("hello")),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Whole("hello"),
    ),
    // Another protocol that is only offered, and what the upstream has for its neighbour alone.
    (
        "HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade, X-Private\r\nX-Private: kept\r\nContent-Length: 5\r\n\r\nhello",
        Whole("hello"),
    ),
];

/// To a `HEAD`: the head alone, whatever follows.
pub(super) const HEADS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nhello",
];

/// A house, and how it is asked.
struct Asked {
    house: House,
    authority: Option<Authority>,
}

impl Asked {
    fn plain() -> Self {
        Self { house: House::with(ALLOWED), authority: None }
    }

    fn inside() -> Self {
        let authority = Authority::new("house");
        let section = "rules:\n- {host: up.test, ports: [PORT], paths: [/], networks: [127.0.0.0/8]}\nauthorities: CA\n";
        let house = House::looking_into(section, authority.server(UP, NOW), &authority);
        Self { house, authority: Some(authority) }
    }

    /// All that is said to a request, until the connection is closed; and what is recorded of it.
    fn ask(&self, method: &str, answer: &str) -> (String, String) {
        let before = self.records().len();
        self.house.upstream.tell(answer, Then::Close);
        let rest = "HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n";
        let text = match self.authority {
            Some(_) => {
                let asked = format!("{method} /x {rest}");
                self.house.ask_inside("up.test:PORT", UP, asked.as_bytes()).unwrap().text
            }
            None => {
                let asked = format!("{method} http://up.test:PORT/x {rest}");
                let mut stream = self.house.connect();
                stream.write_all(&self.house.filled(asked.as_bytes())).unwrap();
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes);
                String::from_utf8(bytes).unwrap()
            }
        };
        belljar_testkit::wait::until(|| self.records().len() > before);
        (text, self.records()[before].clone())
    }

    /// What became of all requests; not of the tunnels that they came by.
    fn records(&self) -> Vec<String> {
        let ended = self.house.ledger.ended();
        let of_request = |record: &&_| {
            let record: &belljar_contract::egress::PassageRecord = record;
            record.asked.as_ref().is_some_and(|asked| asked.path.is_some())
        };
        ended.iter().filter(of_request).map(outcome).collect()
    }
}

#[test]
fn an_answer_is_passed_on_in_one_way_or_not_at_all() {
    for asked in [Asked::plain(), Asked::inside()] {
        for (count, (answer, becomes)) in (1..).zip(ANSWERS) {
            let (text, record) = asked.ask("GET", answer);
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
            assert_eq!(head.matches("HTTP/1.1 ").count(), 1, "{answer:?}: {text:?}");
            match becomes {
                Refused => {
                    assert!(head.starts_with("HTTP/1.1 502 "), "{answer:?}: {text:?}");
                    assert!(
                        body.contains("answer_malformed") && !body.contains("hello"),
                        "{answer:?}: {text:?}"
                    );
                    assert_eq!(record, "failed: answer_malformed", "{answer:?}");
                }
                Cut(rest, code) => {
                    assert!(head.starts_with("HTTP/1.1 200 "), "{answer:?}: {text:?}");
                    // Of what is wrong, as much may have passed as came before it was known to be.
                    let said = answer.split_once("\r\n\r\n").unwrap().1;
                    let is_cut = *code == "answer_cut";
                    assert!(
                        if is_cut { body == *rest } else { said.starts_with(body) },
                        "{answer:?}: {text:?}"
                    );
                    let says_more =
                        head.contains("content-length: 5") || head.contains("transfer-encoding: chunked");
                    assert!(says_more && !body.contains("0\r\n\r\n"), "{answer:?}: {text:?}");
                    assert_eq!(record, format!("failed: {code}"), "{answer:?}");
                }
                Whole(rest) => {
                    assert_eq!(body, *rest, "{answer:?}: {text:?}");
                    assert!(!head.contains("upgrade:") && !head.contains("x-private"), "{text:?}");
                    let is_chunked = head.contains("transfer-encoding: chunked");
                    assert_eq!(is_chunked, rest.ends_with("0\r\n\r\n"), "{answer:?}: {text:?}");
                    assert_eq!(record, "completed", "{answer:?}");
                }
            }
            // Each was asked for once, whatever was answered.
            assert_eq!(asked.house.upstream.heads().len(), count, "{answer:?}");
        }
        for answer in HEADS {
            let (text, record) = asked.ask("HEAD", answer);
            assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\n"), "{answer:?}: {text:?}");
            assert!(!text.contains("hello"), "{answer:?}: {text:?}");
            assert_eq!(record, "completed", "{answer:?}");
        }
    }
}

#[test]
fn heads_of_answers_are_so_long_and_have_so_many_lines_and_no_more() {
    let ok = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}Content-Length: 5\r\n\r\nhello");
    let lines = |count: usize| (0..count).map(|number| format!("X{number}: y\r\n")).collect::<String>();
    for asked in [Asked::plain(), Asked::inside()] {
        for (more, status) in [
            (format!("X: {}\r\n", "y".repeat(60 << 10)), "200"),
            (format!("X: {}\r\n", "y".repeat(64 << 10)), "502"),
            (lines(255), "200"),
            (lines(256), "502"),
        ] {
            let (text, _) = asked.ask("GET", &ok(&more));
            assert_eq!(text.get(9..12), Some(status), "{}", more.len());
        }
    }
}

/// An old client is sent no chunks: what was in them, and the end.
#[test]
fn an_old_client_is_told_the_end_by_the_end() {
    let asked = Asked::plain();
    asked.house.upstream.tell(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        Then::Close,
    );
    let mut stream = asked.house.connect();
    stream.write_all(&asked.house.filled(b"GET http://up.test:PORT/ HTTP/1.0\r\n\r\n")).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("connection: close\r\n\r\nhello") && !text.contains("chunked"), "{text:?}");
}
