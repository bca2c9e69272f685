//! Further requests that are never forwarded: line ends and other characters in wrong places, unusual hosts, lengths and
//! codings, and invalid requests for tunnels.

/// Request lines; each has the same host after it.
pub(super) const LINES: &[&str] = &[
    "GE\0T http://up.test:PORT/ HTTP/1.1",
    "GET http://up.test:PORT/\0 HTTP/1.1",
    "GET http://up.test:PORT/\x0b HTTP/1.1",
    "GET http://up.test:PORT/\x7f HTTP/1.1",
    "GET http://up.test:PORT/\u{fc} HTTP/1.1",
    "GET http://up.test:PORT/a\rb HTTP/1.1",
    "GET http://up.test:PORT/a\nb HTTP/1.1",
    "GET http://up.test:PORT/a b HTTP/1.1",
    "GET http://up.test:PORT/ HTTP/1.1 ",
    "GET http://up.test:PORT/ HTTP/1.1\t",
    "GET http://up.test:PORT/ HTTP/1.1\r",
    "GET http://up.test:PORT/ HTTP/1.1 HTTP/1.1",
    "GET http://up.test:PORT/ HTTP/1.10",
    "GET http://up.test:PORT/ HTTP/01.1",
    "GET http://up.test:PORT/ HTTP/1.",
    "GET http://up.test:PORT/ HTTP/1,1",
    "GET http://up.test:PORT/ HTTP /1.1",
    "GET http://up.test:PORT/ HTTP/3",
    "\"GET\" http://up.test:PORT/ HTTP/1.1",
    "GET: http://up.test:PORT/ HTTP/1.1",
    "http://up.test:PORT/ HTTP/1.1",
    "GET HTTP/1.1",
    "GET * HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "GET http:// HTTP/1.1",
    "GET http:///up.test:PORT/ HTTP/1.1",
    "GET http://:PORT/ HTTP/1.1",
    "GET http://up.test:/ HTTP/1.1",
    "GET http://[up.test]:PORT/ HTTP/1.1",
    "GET http://up%2etest:PORT/ HTTP/1.1",
    "GET http://up.test%00:PORT/ HTTP/1.1",
    "GET ws://up.test:PORT/ HTTP/1.1",
    "CONNECT up.test:PORT/ HTTP/1.1",
    "CONNECT up.test:PORT?x HTTP/1.1",
    "CONNECT up.test:PORT# HTTP/1.1",
    "CONNECT user@up.test:PORT HTTP/1.1",
    "CONNECT up.test:PORT:PORT HTTP/1.1",
    "CONNECT [up.test]:PORT HTTP/1.1",
    "CONNECT  up.test:PORT HTTP/1.1",
    "CONNECT * HTTP/1.1",
    "CONNECT :PORT HTTP/1.1",
];

/// Lines in place of `Host`.
pub(super) const HOSTS: &[&str] = &[
    "Host: up.test:PORT, up.test:PORT",
    "Host: up.test:PORT other.test",
    "Host: http://up.test:PORT",
    "Host: up.test:PORT/",
    "Host: up.test:PORT#",
    "Host: up.test",
    "Host: user@up.test:PORT",
    "Host: [up.test]:PORT",
    "Host: \u{fc}p.test:PORT",
    "Host: up.test:\r\n PORT",
    "Host: up.test:PORT\r\nHOST: up.test:PORT",
    "Host: up.test:PORT\r\nhost: other.test",
    "Host\0: up.test:PORT",
    "Host\t: up.test:PORT",
];

/// Lines after `Host`, of a request that has a body by one interpretation.
pub(super) const HEADERS: &[&str] = &[
    // Line ends and other characters.
    "X\0: y",
    "X\rY: z",
    "X\x7f: y",
    "X\u{e4}: y",
    "X Y: z",
    "\"X\": y",
    "X: \x01",
    "X: \x1b[2J",
    "X: \x7f",
    "X: y\r\r\nContent-Length: 5",
    "X: y\r\n\rContent-Length: 5",
    "X: y\n\rContent-Length: 5",
    "X:\n y",
    "X: y\r\n : z",
    // Codings.
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: chunked chunked",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding: 'chunked'",
    "Transfer-Encoding: chunked\x0b",
    "Transfer-Encoding: chunked\0",
    "Transfer-Encoding: \u{a0}chunked",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding: chunk",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: trailers",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: deflate",
    "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 0",
    "Transfer-Encoding: identity\r\nContent-Length: 5",
    // Lengths.
    "Content-Length: 5;",
    "Content-Length: 5.0",
    "Content-Length: 1e1",
    "Content-Length: 0_5",
    "Content-Length: \"5\"",
    "Content-Length: \u{ff15}",
    "Content-Length: 5\x0b",
    "Content-Length: 5,6",
    "Content-Length: 5\r\n 0",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Content Length: 5\r\nContent-Length: 5 ,",
    "Content-Length: 9223372036854775808",
    "content-length: 5\r\nCONTENT-LENGTH: 0",
    // Expectations.
    "Expect: 100-continue, x\r\nContent-Length: 5",
    "Expect:\r\nContent-Length: 5",
    "Expect: 100\r\nContent-Length: 5",
];

/// Returns all requests, complete.
pub(super) fn requests() -> Vec<String> {
    let lines = LINES.iter().map(|line| format!("{line}\r\nHost: up.test:PORT\r\n\r\n"));
    let hosts = HOSTS.iter().map(|host| format!("GET http://up.test:PORT/ HTTP/1.1\r\n{host}\r\n\r\n"));
    let headers = HEADERS.iter().map(|header| {
        format!("POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n{header}\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    });
    lines.chain(hosts).chain(headers).collect()
}
