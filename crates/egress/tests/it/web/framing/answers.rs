//! Answers of upstreams with invalid framing, cut, or with surplus bytes; over plain HTTP, and in intercepted connections.

use super::ALLOWED;
use crate::tls::authority::{Authority, NOW};
use crate::web::house::{ProxyRig, UP, outcome};
use crate::web::upstream::AfterAnswer;
use std::io::{Read, Write};

/// Result of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExpectedAnswer {
    /// The client gets an error, and nothing of the answer.
    Refused,
    /// The client gets the beginning without an end, and that is recorded.
    Cut(&'static str, &'static str),
    /// The client gets exactly this.
    Whole(&'static str),
}
use ExpectedAnswer::{Cut, Refused, Whole};

/// Answers to a `GET`, after which the upstream closes.
pub(super) const ANSWERS: &[(&str, ExpectedAnswer)] = &[
    // Closed before a head, and within one.
    ("", Refused),
    ("HTTP/1.1", Refused),
    ("HTTP/1.1 200 OK\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: ", Refused),
    // Heads with two lengths.
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
    // Invalid heads.
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
    // An unrequested protocol; informational answers without an end, or with a body that they can't have.
    ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello", Refused),
    (
        "HTTP/1.1 103 Early\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Refused,
    ),
    ("HTTP/1.1 100 Continue\r\n\r\n", Refused),
    // Less than the stated length.
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
    // Invalid chunks.
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
    // More than the stated length: surplus bytes belong to no request.
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
    // Answers without a body, whatever their headers state.
    ("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", Whole("")),
    ("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Whole("")),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", Whole("")),
    ("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Whole("")),
    // Until the connection is closed, and after an informational answer.
    ("HTTP/1.1 200 OK\r\n\r\nhello", Whole("hello")),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello", Whole("hello")),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", Whole("hello")),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Whole("hello"),
    ),
    // A protocol that is only offered, and headers that are only for the next hop.
    (
        "HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade, X-Private\r\nX-Private: kept\r\nContent-Length: 5\r\n\r\nhello",
        Whole("hello"),
    ),
];

/// Answers to a `HEAD`: only the head, whatever follows.
pub(super) const HEADS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nhello",
];

/// Test setup, and the way in which it is asked.
struct AnswerSetup {
    house: ProxyRig,
    authority: Option<Authority>,
}

impl AnswerSetup {
    fn plain() -> Self {
        Self { house: ProxyRig::with(ALLOWED), authority: None }
    }

    fn inside() -> Self {
        let authority = Authority::new("house");
        let section = "rules:\n- {host: up.test, ports: [PORT], paths: [/], networks: [127.0.0.0/8]}\nauthorities: CA\n";
        let house = ProxyRig::looking_into(section, authority.server(UP, NOW), &authority);
        Self { house, authority: Some(authority) }
    }

    /// Returns the answer to a request, until the connection is closed, and its record.
    fn ask(&self, method: &str, answer: &str) -> (String, String) {
        let before = self.records().len();
        self.house.upstream.tell(answer, AfterAnswer::Close);
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

    /// Returns the outcomes of all requests, without those of their tunnels.
    fn records(&self) -> Vec<String> {
        let ended = self.house.ledger.ended();
        let of_request = |record: &&_| {
            let record: &belljar_contract::egress::ProxiedRequestRecord = record;
            record.asked.as_ref().is_some_and(|asked| asked.path.is_some())
        };
        ended.iter().filter(of_request).map(outcome).collect()
    }
}

#[test]
fn ambiguous_answer_is_refused_or_cut() {
    for asked in [AnswerSetup::plain(), AnswerSetup::inside()] {
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
                    // The part before an error is noticed may have been forwarded.
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
            // Each was requested once, whatever was answered.
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
fn answer_head_size_and_header_count_are_limited() {
    let ok = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}Content-Length: 5\r\n\r\nhello");
    let lines = |count: usize| (0..count).map(|number| format!("X{number}: y\r\n")).collect::<String>();
    for asked in [AnswerSetup::plain(), AnswerSetup::inside()] {
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

/// An HTTP/1.0 client gets the payload without chunks, and then the end of the connection.
#[test]
fn http_1_0_client_gets_an_answer_that_ends_with_the_connection() {
    let asked = AnswerSetup::plain();
    asked.house.upstream.tell(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        AfterAnswer::Close,
    );
    let mut stream = asked.house.connect();
    stream.write_all(&asked.house.filled(b"GET http://up.test:PORT/ HTTP/1.0\r\n\r\n")).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("connection: close\r\n\r\nhello") && !text.contains("chunked"), "{text:?}");
}
