//! Tests of accepted heads, and of heads that could be read in two ways.

use super::*;

fn request(text: &str) -> Result<RequestHead, MalformedHttp> {
    RequestHead::parse(text.as_bytes())
}

#[test]
fn plain_request_head_is_parsed() {
    let head = request(
        "POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 12\r\nX-A:  b c \r\n\r\n",
    )
    .unwrap();
    assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!((head.query.as_deref(), head.body), (Some("beta=true"), BodyLength::Exact(12)));
    assert_eq!(head.header("x-a"), Some(&b"b c"[..]));
    assert!(head.keeps_alive && !head.expects_continue);
    let old = request("GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(!old.keeps_alive && old.body == BodyLength::Exact(0));
    assert!(!request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").unwrap().keeps_alive);
    assert!(request("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n").unwrap().expects_continue);
}

/// Heads that are known to be read differently by two servers.
#[test]
fn ambiguous_request_head_is_refused() {
    use MalformedHttp::*;
    let with = |line: &str| format!("POST /v1/x HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n");
    for (line, why) in [
        ("Content-Length: 1\r\nContent-Length: 1", Length),
        ("Content-Length: 1, 1", Length),
        ("Content-Length: +1", Length),
        ("Content-Length: -1", Length),
        ("Content-Length: 0x1", Length),
        ("Content-Length: 1 2", Length),
        ("Content-Length:", Length),
        ("Content-Length: 99999999999999999999", Length),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked", Length),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Coding),
        ("Transfer-Encoding: chunked, identity", Coding),
        ("Transfer-Encoding: identity", Coding),
        ("Transfer-Encoding: gzip, chunked", Coding),
        ("Transfer-Encoding: xchunked", Coding),
        ("Transfer-Encoding: \"chunked\"", Coding),
        ("Transfer-Encoding:", Coding),
        ("Transfer-Encoding : chunked", Syntax),
        ("Transfer-Encoding\t: chunked", Syntax),
        (" folded: line", Syntax),
        ("X: a\r\n folded", Syntax),
        ("X: a\nY: b", LineEnd),
        ("X: a\rY: b", LineEnd),
        ("X: a\0b", Control),
        ("X: a\u{b}b", Control),
        ("X: a\u{7f}b", Control),
        ("no colon", Syntax),
        (": no name", Syntax),
        ("X(): y", Syntax),
        ("Host: b", Host),
        ("Expect: 200-ok", Expectation),
    ] {
        assert_eq!(request(&with(line)), Err(why), "{line:?}");
    }
    for (text, why) in [
        ("GET / HTTP/1.1\r\n\r\n", Host),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", Version),
        ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", Version),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Version),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", Version),
        ("GET /\r\n\r\n", Syntax),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version),
        ("GET http://a/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", Target),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", Target),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", Target),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", Target),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Coding),
    ] {
        assert_eq!(request(text), Err(why), "{text:?}");
    }
}

#[test]
fn request_with_too_many_headers_is_refused() {
    let many = |count: usize| {
        let lines: String = (1..count).map(|at| format!("X-{at}: y\r\n")).collect();
        request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
    };
    assert!(many(REQUEST_HEADERS).is_ok());
    assert_eq!(many(REQUEST_HEADERS + 1), Err(MalformedHttp::TooManyHeaders));
}

#[test]
fn head_ends_at_the_first_empty_line_with_or_without_cr() {
    assert_eq!(end(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
    assert_eq!(end(b"a\r\n\r\nbody"), Some(5));
    assert_eq!(end(b"a\n\nb\r\n\r\n"), Some(3));
}

#[test]
fn response_without_length_ends_with_its_connection() {
    let answer = |text: &str| ResponseHead::parse(text.as_bytes());
    let head = answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!((head.status, head.body, head.keeps_alive), (200, BodyLength::Chunked, true));
    let head = answer("HTTP/1.1 200 OK\r\n\r\n").unwrap();
    assert_eq!((head.body, head.keeps_alive), (BodyLength::UntilClose, false));
    let head = answer("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n").unwrap();
    assert_eq!(head.body, BodyLength::Exact(0));
    assert!(!answer("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap().keeps_alive);
    assert_eq!(
        answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        Err(MalformedHttp::Length)
    );
}

#[test]
fn response_status_must_be_three_digits_without_leading_zero() {
    let status = |text: &str| {
        let head = format!("HTTP/1.1 {text} x\r\nContent-Length: 0\r\n\r\n");
        ResponseHead::parse(head.as_bytes()).map(|head| head.status)
    };
    for none in ["000", "001", "099", "20", "2000", "2x0"] {
        assert_eq!(status(none), Err(MalformedHttp::Syntax), "{none}");
    }
    assert_eq!((status("100"), status("999")), (Ok(100), Ok(999)));
}
