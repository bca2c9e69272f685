//! Tests of TLS interception.

use super::house::{ProxyRig, UP, config, outcome};
use crate::tls::authority::{Authority, NOW};

const RULES: &str = "rules:
- {host: up.test, ports: [PORT], methods: [GET, HEAD], paths: [/open], networks: [127.0.0.0/8]}
authorities: CA
";

fn house(section: &str) -> (ProxyRig, Authority) {
    let authority = Authority::new("house");
    (ProxyRig::looking_into(section, authority.server(UP, NOW), &authority), authority)
}

#[test]
fn each_intercepted_request_is_judged_and_recorded() {
    let (mut house, _authority) = house(RULES);
    let asked = b"GET /open HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n\
        GET /closed HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n\
        HEAD /open/x?y HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n\
        DELETE /open HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n";
    let told = house.ask_inside("up.test:PORT", UP, asked).unwrap();
    let statuses: Vec<&str> =
        told.text.match_indices("HTTP/1.1 ").map(|(at, _)| &told.text[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "403", "200", "403"], "{}", told.text);
    assert_eq!(house.upstream.connections(), 2);
    let heads = house.upstream.heads();
    assert!(heads[0].starts_with("GET /open HTTP/1.1\r\nhost: up.test:"), "{heads:?}");
    assert!(heads[1].starts_with("HEAD /open/x?y HTTP/1.1\r\n"), "{heads:?}");
    house.ledger.latest(5);
    let records = house.end();
    let shown: Vec<String> = records
        .iter()
        .map(|record| {
            let asked = record.asked.as_ref().unwrap();
            let path = asked.path.as_ref().map_or("", |path| path.as_str());
            format!("{} {path} {} {:?}", asked.method.as_str(), outcome(record), record.tls_name.is_some())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "GET /open completed true",
            "GET /closed denied: no_rule_for_path false",
            "HEAD /open/x completed true",
            "DELETE /open denied: no_rule_for_method false",
            "CONNECT  completed true",
        ]
    );
    assert_eq!(house.ledger.begun().len(), 2);
}

#[test]
fn intercepted_request_must_be_for_the_tunnel_host() {
    let (house, _authority) = house(RULES);
    for (asked, code) in [
        (&b"GET /open HTTP/1.1\r\nHost: other.test:PORT\r\n\r\n"[..], "host_mismatch"),
        (b"GET /open HTTP/1.1\r\nHost: up.test\r\n\r\n", "host_mismatch"),
        (b"GET https://up.test:PORT/open HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "malformed_request"),
        (b"CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "malformed_request"),
        (b"GET /open/../x HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "ambiguous_path"),
        (b"GET /open%2f..%2fx HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "ambiguous_path"),
        (b"GET /open HTTP/1.1\r\nHost: up.test:PORT\r\nHost: up.test:PORT\r\n\r\n", "malformed_request"),
        (b"GET /open HTTP/1.1\nHost: up.test:PORT\n\n", "malformed_request"),
        (
            b"GET /open HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "malformed_request",
        ),
    ] {
        let asked = [asked, b"GET /open HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n"].concat();
        let told = house.ask_inside("up.test:PORT", UP, &asked).unwrap();
        assert_eq!(told.code(), code, "{}: {}", String::from_utf8_lossy(&asked), told.text);
    }
    // Control.
    let before = house.upstream.connections();
    assert_eq!(house.get_inside("/open", "").status, 200);
    assert_eq!(house.upstream.connections(), before + 1);
}

#[test]
fn intercepted_handshake_for_another_sni_is_not_answered() {
    let (house, _authority) = house(RULES);
    let asked = b"GET /open HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n";
    let told = house.ask_inside("up.test:PORT", "other.test", asked);
    assert!(told.is_err(), "{told:?}");
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: tls_name_mismatch");
    assert_eq!(house.upstream.connections(), 0);
    assert_eq!(house.ask_inside("up.test:PORT", UP, asked).unwrap().status, 200);
}

#[test]
fn intercepted_request_is_not_sent_to_an_untrusted_upstream() {
    let (house, other) = (Authority::new("house"), Authority::new("house"));
    for (what, vouched) in [
        ("another authority", other.server(UP, NOW)),
        ("another name", house.server("down.test", NOW)),
        ("expired", house.server(UP, (2020, 2021))),
    ] {
        let house = ProxyRig::looking_into(RULES, vouched, &house);
        let told = house.get_inside("/open", "");
        assert_eq!((told.status, told.code()), (502, "upstream_untrusted"), "{what}: {}", told.text);
        assert_eq!(house.upstream.heads(), [""; 0], "{what}");
    }
}

#[test]
fn plain_http_in_an_inspected_tunnel_is_judged() {
    use std::io::{Read, Write};
    // Some clients use tunnels for plain HTTP, too. This upstream only speaks TLS and gets plain text.
    let (house, _authority) = house(RULES);
    for (path, expected) in [("/closed", "403"), ("/open", "502")] {
        let mut tunnel = house.tunnel("up.test:PORT").unwrap();
        let asked = house.filled(
            format!("GET {path} HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        tunnel.write_all(&asked).unwrap();
        let mut text = String::new();
        let _ = tunnel.read_to_string(&mut text);
        assert_eq!(text.get(9..12), Some(expected), "{text}");
    }
}

#[test]
fn tightened_policy_applies_to_intercepted_requests() {
    let (house, authority) = house(RULES);
    assert_eq!(house.get_inside("/open", "").status, 200);
    let tighter = RULES
        .replace("/open", "/other")
        .replace("PORT", &house.port())
        .replace("CA", &authority.file().display().to_string());
    house.policy.replace(config(&tighter));
    let told = house.get_inside("/open", "");
    assert_eq!((told.status, told.code()), (403, "not_allowed"), "{}", told.text);
}

#[test]
fn tunnel_that_needs_inspection_is_denied_without_an_interception_ca() {
    let house = ProxyRig::with("- {host: up.test, ports: [PORT], methods: [GET], networks: [127.0.0.0/8]}\n");
    let told = house.tunnel("up.test:PORT").unwrap_err();
    assert_eq!((told.status, told.code()), (403, "inspection_needed"));
    assert_eq!(house.upstream.connections(), 0);
}

#[test]
fn read_request_with_a_body_is_refused_under_method_or_path_rules() {
    let rules = "rules:
- {host: up.test, ports: [PORT], methods: [GET, HEAD, TRACE, POST], paths: [/open], networks: [127.0.0.0/8]}
- {host: up.test, ports: [PORT], paths: [/any], networks: [127.0.0.0/8]}
authorities: CA
";
    let (house, authority) = house(rules);
    let bodies = ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"];
    for (method, path) in [("GET", "/open"), ("HEAD", "/open"), ("TRACE", "/open"), ("GET", "/any")] {
        for body in bodies {
            let asked = format!("{method} {path} HTTP/1.1\r\nHost: up.test:PORT\r\n{body}");
            let told = house.ask_inside("up.test:PORT", UP, asked.as_bytes()).unwrap();
            assert_eq!(told.status, 400, "{asked}: {}", told.text);
            // The answer to `HEAD` has no body with a code.
            assert!(method == "HEAD" || told.code() == "body_not_allowed", "{asked}: {}", told.text);
            let ended = house.ledger.ended();
            assert!(ended.iter().any(|record| outcome(record) == "denied: body_not_allowed"), "{asked}");
        }
    }
    assert_eq!(house.upstream.connections(), 0);
    // Controls: a length of zero, methods with a body, and a rule without methods and paths.
    let close = "Host: up.test:PORT\r\nConnection: close\r\n";
    let reading = format!("GET /open HTTP/1.1\r\n{close}Content-Length: 5\r\n\r\nhello");
    for asked in [
        format!("GET /open HTTP/1.1\r\n{close}Content-Length: 0\r\n\r\n"),
        format!("POST /open HTTP/1.1\r\n{close}Content-Length: 5\r\n\r\nhello"),
    ] {
        assert_eq!(house.ask_inside("up.test:PORT", UP, asked.as_bytes()).unwrap().status, 200, "{asked}");
    }
    let wide = "rules:\n- {host: up.test, ports: [PORT], networks: [127.0.0.0/8], inspect: true}\n";
    let wide = rules.replace("rules:\n", wide).replace("PORT", &house.port());
    house.policy.replace(config(&wide.replace("CA", &authority.file().display().to_string())));
    assert_eq!(house.ask_inside("up.test:PORT", UP, reading.as_bytes()).unwrap().status, 200);
}
