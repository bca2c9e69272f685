//! PX7: headers that are meant for intermediaries, that hide something, or that are too large.

use super::house::ProxyRig;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

/// Headers that are only for this proxy or for no server.
const TAKEN_OUT: &[&str] = &[
    "Proxy-Authorization: Basic eDp5",
    "Proxy-Authenticate: Basic",
    "Proxy-Connection: keep-alive",
    "Keep-Alive: timeout=5",
    "TE: trailers",
    "Trailer: X",
    "Upgrade: h2c",
    "HTTP2-Settings: AAMAAABkAAQ\r\nConnection: HTTP2-Settings",
    "X-Hidden: seen\r\nConnection: X-Hidden",
    "X-Hidden: seen\r\nConnection: close, x-hidden",
    "Authorization: seen\r\nConnection: authorization",
    "Cookie: seen\r\nConnection: Cookie,keep-alive",
    "X-Forwarded-For: 10.0.0.1",
    "X-Forwarded-Host: other.test",
    "X-Forwarded-Proto: https",
    "Forwarded: for=10.0.0.1",
    "X-Real-IP: 10.0.0.1",
    "Via: 1.1 other",
];

/// Headers that are refused.
const REFUSED: &[&str] = &[
    "X: a\r\n\r\nGET http://other.test/ HTTP/1.1\r\nHost: other.test\r\nX:",
    "X: a\rb",
    "X: a\nY: b",
    "X: a\0b",
    "X\0: a",
    "X\r: a",
    "X\n: a",
    " X: a",
    "X : a",
    "Host: up.test:PORT",
    "Content-Length: 0\r\nContent-Length: 1",
];

fn request(header: &str) -> String {
    format!("GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n{header}\r\n\r\n")
}

#[test]
fn hop_by_hop_headers_are_not_forwarded() {
    for header in TAKEN_OUT {
        let house = ProxyRig::with(ALLOWED);
        let told = house.send(request(&format!("{header}\r\nAccept: stays")).as_bytes());
        assert_eq!(told.status, 200, "{header}: {told:?}");
        let host = format!("host: up.test:{}", house.upstream.address.port());
        let heads = house.upstream.heads();
        assert_eq!(heads.len(), 1, "{header}");
        let head = heads[0].to_ascii_lowercase();
        assert_eq!(
            head,
            format!("get / http/1.1\r\n{host}\r\naccept: stays\r\nconnection: close"),
            "{header}"
        );
    }
}

/// Headers that frame a request or name its host are not removed because `Connection` lists them.
#[test]
fn framing_headers_listed_in_connection_are_not_removed() {
    let house = ProxyRig::with(ALLOWED);
    for listed in ["Host", "Content-Length", "Transfer-Encoding"] {
        let hidden = "GET /hidden HTTP/1.1\r\nHost: up.test\r\n\r\n";
        let told = house.send(
            format!(
                "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close, {listed}\r\nContent-Length: {}\r\n\r\n{hidden}",
                hidden.len()
            )
            .as_bytes(),
        );
        assert!([200, 400].contains(&told.status), "{listed}: {told:?}");
    }
    for head in house.upstream.heads().iter().filter(|head| head.starts_with("POST")) {
        assert!(head.contains("host: up.test") && head.contains("content-length: "), "{head}");
    }
}

#[test]
fn header_that_could_hide_another_header_or_request_is_refused() {
    let house = ProxyRig::with(ALLOWED);
    for header in REFUSED {
        let told = house.send(request(header).as_bytes());
        let is_first_alone = told.status == 200 && told.text.contains("403");
        assert!(told.status == 400 || is_first_alone, "{header:?}: {told:?}");
    }
    let heads = house.upstream.heads();
    assert!(heads.len() <= 1 && !heads.join("").contains("other.test"), "{heads:?}");
}

#[test]
fn oversized_request_head_is_refused_for_connect_and_plain_requests() {
    let house = ProxyRig::with(ALLOWED);
    let connect =
        |header: &str| format!("CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n{header}\r\n");
    for of in [&request as &dyn Fn(&str) -> String, &connect] {
        let long = house.send(of(&format!("X: {}\r\n", "y".repeat(64 << 10))).as_bytes());
        assert_eq!((long.status, long.code()), (431, "request_head_too_large"));
        let many: String = (0..10_000).map(|number| format!("X{number}: y\r\n")).collect();
        let many = house.send(of(&many).as_bytes());
        assert!([400, 431].contains(&many.status), "{many:?}");
        let long_name = house.send(of(&format!("{}: y\r\n", "X".repeat(20 << 10))).as_bytes());
        assert_eq!(long_name.status, 431);
    }
    let path = house.send(
        format!("GET http://up.test:PORT/{} HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "a".repeat(20 << 10))
            .as_bytes(),
    );
    assert_eq!(path.status, 431);
    assert_eq!(house.upstream.connections(), 0);
    // Control.
    assert_eq!(house.send(request(&format!("X: {}", "y".repeat(8 << 10))).as_bytes()).status, 200);
}

/// A request for a tunnel contains little more than its destination, so its limit is half that of others.
#[test]
fn request_head_is_accepted_up_to_its_exact_size_limit() {
    let house = ProxyRig::with(ALLOWED);
    let port = house.port();
    let connect = format!("CONNECT up.test:{port} HTTP/1.1\r\nHost: up.test:{port}\r\nX: ");
    let get =
        format!("GET http://up.test:{port}/ HTTP/1.1\r\nHost: up.test:{port}\r\nConnection: close\r\nX: ");
    let post =
        format!("POST http://up.test:{port}/ HTTP/1.1\r\nHost: up.test:{port}\r\nContent-Length: 5\r\nX: ");
    for (begin, body, most) in [(connect, "", 8 << 10), (get, "", 16 << 10), (post, "hello", 16 << 10)] {
        let whole = |length: usize| format!("{begin}{}\r\n\r\n{body}", "y".repeat(length - begin.len() - 4));
        for length in [most - 1, most] {
            let told = house.send(whole(length).as_bytes());
            assert_eq!(told.status, 200, "{length} of {begin}: {told:?}");
        }
        let before = (house.upstream.connections(), house.names.asked());
        for length in [most + 1, most + 2, 2 * most] {
            let told = house.send(whole(length).as_bytes());
            assert_eq!((told.status, told.code()), (431, "request_head_too_large"), "{length} of {begin}");
            assert!(told.text.contains(&format!("larger than {most} bytes")), "{told:?}");
        }
        // The end of the head is not awaited, either.
        let told = house.send(&whole(4 * most).as_bytes()[..most + 1]);
        assert_eq!(told.status, 431, "{begin}");
        assert_eq!((house.upstream.connections(), house.names.asked()), before);
    }
}
