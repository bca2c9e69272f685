//! Tests of requests that the host sends for an agent, by the same policy, dialer and records as requests through the run's
//! sockets.

use super::house::{ProxyRig, UP, outcome};
use super::upstream::AfterAnswer;
use crate::tls::authority::{Authority, NOW};
use belljar_egress::web::fetch::{FetchError, FetchRequest, Method};
use std::time::Duration;

const RULES: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

const SECURE: &str = "rules:
- {host: up.test, ports: [PORT], methods: [GET], paths: [/open], networks: [127.0.0.0/8]}
- {host: up.test, ports: [PORT], methods: [POST], paths: [/told], networks: [127.0.0.0/8]}
authorities: CA
";

fn request(method: Method, url: &str) -> FetchRequest {
    FetchRequest {
        url: url.to_owned(),
        method,
        headers: Vec::new(),
        body: Vec::new(),
        most_bytes: 1 << 20,
        within: Duration::from_secs(60),
    }
}

fn with_headers(headers: &[(&str, &str)]) -> FetchRequest {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FetchRequest { headers, ..request(Method::Get, "http://up.test:PORT/open") }
}

#[test]
fn tool_request_is_sent_unchanged_and_recorded_for_the_run() {
    let authority = Authority::new("house");
    let house = ProxyRig::looking_into(SECURE, authority.server(UP, NOW), &authority);
    let asked = FetchRequest {
        headers: vec![
            ("X-Token".to_owned(), " t ".to_owned()),
            ("content-type".to_owned(), "text/plain".to_owned()),
        ],
        body: b"hello".to_vec(),
        ..request(Method::Post, "https://up.test:PORT/told?a=b#part")
    };
    let answered = house.request(asked).unwrap();
    assert_eq!(answered.status, 200, "{answered:?}");
    assert!(answered.url.ends_with("/told?a=b"), "{}", answered.url);
    let head = house.upstream.heads().remove(0);
    assert!(head.starts_with("POST /told?a=b HTTP/1.1\r\nhost: up.test:"), "{head}");
    for line in [
        "x-token: t",
        "content-type: text/plain",
        "user-agent: belljar",
        "content-length: 5",
        "connection: close",
    ] {
        assert!(head.lines().any(|said| said == line), "{line}: {head}");
    }
    assert!(house.upstream.said()[0].ends_with("\r\n\r\nhello"), "{:?}", house.upstream.said());
    let record = house.ledger.latest(1);
    assert_eq!((outcome(&record).as_str(), record.rule), ("completed", Some(1)));
    assert_eq!(record.asked.unwrap().method.as_str(), "POST");
}

#[test]
fn tool_request_outside_the_policy_is_denied() {
    let authority = Authority::new("house");
    let house = ProxyRig::looking_into(SECURE, authority.server(UP, NOW), &authority);
    for (method, url, expected) in [
        (Method::Get, "https://other.test:PORT/open", "not_allowed"),
        (Method::Post, "https://up.test:PORT/open", "not_allowed"),
        (Method::Delete, "https://up.test:PORT/open", "not_allowed"),
        (Method::Get, "https://up.test:PORT/told", "not_allowed"),
        (Method::Put, "https://up.test:PORT/told", "not_allowed"),
        (Method::Get, "http://169.254.169.254/latest/meta-data", "not_allowed"),
        (Method::Post, "http://2852039166/", "not_allowed"),
    ] {
        let refused = house.request(request(method, url)).unwrap_err();
        let FetchError::Denied { code, .. } = refused else { panic!("{method:?} {url}: {refused}") };
        assert_eq!(code, expected, "{method:?} {url}");
    }
    for (name, value) in
        [("Destination", "/told"), ("X-Amz-Copy-Source", "/told"), ("destination", "http://other.test/open")]
    {
        let mut named = with_headers(&[(name, value)]);
        named.url = "https://up.test:PORT/open".to_owned();
        let refused = house.request(named).unwrap_err();
        let FetchError::Denied { code, .. } = refused else { panic!("{name}: {refused}") };
        assert_eq!(code, "other_resource_not_allowed", "{name}: {value}");
    }
    let body = FetchRequest { body: b"x".to_vec(), ..request(Method::Get, "https://up.test:PORT/open") };
    assert!(house.request(body).is_err(), "a read-only rule permits no request body");
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
    // Control.
    assert_eq!(house.request(request(Method::Get, "https://up.test:PORT/open")).unwrap().status, 200);
}

#[test]
fn tool_request_returns_a_redirect_without_following_it() {
    let house = ProxyRig::with(RULES);
    let answered =
        house.request(request(Method::Post, "http://up.test:PORT/to?http://other.test/x")).unwrap();
    assert!((300..400).contains(&answered.status), "{answered:?}");
    let location = answered.headers.iter().find(|(name, _)| name == "location").unwrap();
    assert_eq!(location.1, "http://other.test/x");
    assert_eq!(house.upstream.connections(), 1);
}

#[test]
fn tool_request_truncates_the_body_at_the_requested_size() {
    let house = ProxyRig::with(RULES);
    let told = |method, most_bytes| {
        let answered =
            house.request(FetchRequest { most_bytes, ..request(method, "http://up.test:PORT/x") }).unwrap();
        (String::from_utf8(answered.body).unwrap(), answered.is_truncated)
    };
    house.upstream.tell("HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\n0123456789", AfterAnswer::Wait);
    assert_eq!(told(Method::Get, 4), ("0123".to_owned(), true));
    assert_eq!(told(Method::Get, 10), ("0123456789".to_owned(), false));
    house.upstream.tell(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n0\r\n\r\n",
        AfterAnswer::Wait,
    );
    assert_eq!(told(Method::Get, 5), ("01234".to_owned(), true));
    assert_eq!(told(Method::Delete, 6), ("012345".to_owned(), false));
    // The head states a length, and no body follows.
    house.upstream.tell("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", AfterAnswer::Wait);
    assert_eq!(told(Method::Head, 4), (String::new(), false));
}

#[test]
fn tool_request_with_framing_headers_or_placeholders_is_refused() {
    let house = ProxyRig::with(RULES);
    for headers in [
        [("host", "other.test")],
        [("Content-Length", "3")],
        [("transfer-encoding", "chunked")],
        [("connection", "close")],
        [("x-forwarded-for", "127.0.0.1")],
        [("x", "a\r\nhost: other.test")],
        [("x\r\n", "a")],
        [("authorization", "Bearer belljar:cred:x")],
        [("authorization", "Basic YmVsbGphcjpjcmVkOng6")],
    ] {
        let refused = house.request(with_headers(&headers)).unwrap_err();
        assert!(matches!(refused, FetchError::Header { .. }), "{headers:?}: {refused}");
    }
    assert_eq!(house.upstream.connections(), 0);
    // Control.
    assert_eq!(house.request(with_headers(&[("authorization", "Bearer x")])).unwrap().status, 200);
}
