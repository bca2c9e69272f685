//! Tests that only requests which a rule allows get through, in either form.

use super::house::{ProxyRig, UP, leads};

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

#[test]
fn allowed_host_is_reached_by_plain_request_and_tunnel() {
    let house = ProxyRig::with(ALLOWED);
    let told = house.get("http://up.test:PORT/x?y");
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.text.ends_with("hello") && told.text.contains("x-seen: yes"), "{told:?}");
    let heads = house.upstream.heads();
    assert!(heads[0].starts_with("GET /x?y HTTP/1.1\r\nhost: up.test:"), "{heads:?}");
    assert!(house.tunnel("up.test:PORT").is_ok());
    belljar_testkit::wait::until(|| house.upstream.connections() >= 2);
    assert_eq!(house.upstream.connections(), 2);
}

#[test]
fn host_without_a_rule_is_denied_without_a_name_lookup() {
    let house = ProxyRig::with(ALLOWED);
    for (host, port) in [
        ("other.test", "PORT"),
        (UP, "22"),
        ("evilup.test", "PORT"),
        ("up.test.evil.test", "PORT"),
        ("127.0.0.1", "PORT"),
    ] {
        let authority = format!("{host}:{port}");
        let denied = house.tunnel(&authority).unwrap_err();
        assert_eq!((denied.status, denied.code()), (403, "not_allowed"), "{authority}: {denied:?}");
        let denied = house.get(&format!("http://{authority}/"));
        assert_eq!((denied.status, denied.code()), (403, "not_allowed"), "{authority}: {denied:?}");
    }
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
    // Control.
    assert!(house.tunnel("up.test:PORT").is_ok());
}

#[test]
fn empty_rules_deny_everything() {
    let house = ProxyRig::with("  []\n");
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "not_allowed");
    assert_eq!(house.get("http://up.test:PORT/").code(), "not_allowed");
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
}

#[test]
fn denied_client_learns_only_the_needed_rule() {
    let house = ProxyRig::with("- host: secret-partner.example\n- {host: up.test, ports: [1]}\n");
    let denied = house.tunnel("up.test:PORT").unwrap_err();
    assert!(denied.text.starts_with("HTTP/1.1 403 up.test:"), "{denied:?}");
    assert!(denied.text.contains(r#"{host: \"up.test\", ports: ["#), "{denied:?}");
    assert!(!denied.text.contains("secret-partner"), "{denied:?}");
    let denials = house.run.denials();
    assert_eq!((denials.listed.len(), denials.listed[0].reason), (1, "no_rule_for_port"));
    let needed = denials.listed[0].needed.clone().unwrap();
    // A client doesn't learn where a name leads.
    house.replace(&format!("- {needed}\n"));
    house.names.set(vec![(UP, leads(&["10.11.12.13"]))]);
    let denied = house.tunnel("up.test:PORT").unwrap_err();
    assert_eq!(denied.code(), "address_not_allowed");
    assert!(!denied.text.contains("10.11"), "{denied:?}");
}

#[test]
fn method_and_path_rules_apply_to_plain_http_and_require_inspection_of_tunnels() {
    let house = ProxyRig::with(
        "- {host: up.test, ports: [PORT], networks: [127.0.0.1], methods: [GET], paths: [/v1/]}\n",
    );
    assert_eq!(house.get("http://up.test:PORT/v1/a").status, 200);
    assert_eq!(house.get("http://up.test:PORT/v2/a").code(), "not_allowed");
    assert_eq!(house.get("http://up.test:PORT/v1/../v2/a").code(), "ambiguous_path");
    for up in ["%2e%2e", "%ef%bc%8e%ef%bc%8e", "%E2%80%A5", "...", "..%20", "..%23", "..%3f"] {
        let path = format!("http://up.test:PORT/v1/{up}/v2/a");
        assert_eq!(house.get(&path).code(), "ambiguous_path", "{path}");
    }
    let post = house
        .send(b"POST http://up.test:PORT/v1/a HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.code(), "not_allowed");
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "inspection_needed");
    assert_eq!(house.upstream.heads().len(), 1);
}

#[test]
fn resource_in_a_header_is_checked_against_the_request_paths() {
    let house = ProxyRig::with("- {host: up.test, ports: [PORT], networks: [127.0.0.1], paths: [/pub/]}\n");
    let send = |method: &str, header: &str| {
        let head =
            format!("{method} http://up.test:PORT/pub/a HTTP/1.1\r\nHost: up.test:PORT\r\n{header}\r\n");
        house.send(format!("{head}Content-Length: 0\r\n\r\n").as_bytes())
    };
    for (method, header) in [
        ("COPY", "Destination: http://up.test:PORT/priv/evil"),
        ("MOVE", "Destination: /priv/evil"),
        ("COPY", "Destination: http://other.test/pub/a"),
        ("PUT", "X-Amz-Copy-Source: /priv/secret"),
        ("PUT", "X-Ms-Rename-Source: /priv/secret"),
    ] {
        let refused = send(method, header);
        assert_eq!(
            (refused.status, refused.code()),
            (403, "other_resource_not_allowed"),
            "{method} {header}"
        );
    }
    assert_eq!(house.upstream.connections(), 0);
    // Control.
    assert_eq!(send("COPY", "Destination: http://up.test:PORT/pub/b").status, 200);
    assert_eq!(send("PUT", "X-Source: /priv/secret").status, 200);
    assert_eq!(house.upstream.heads().len(), 2);
}

#[test]
fn redirect_target_is_judged_as_a_new_request() {
    let house = ProxyRig::with(ALLOWED);
    assert_eq!(house.get("http://up.test:PORT/").status, 200);
    // Targets of the redirect.
    for next in ["http://127.0.0.1:PORT/", "http://169.254.169.254/latest/meta-data/", "http://other.test/"] {
        assert_eq!(house.get(next).code(), "not_allowed", "{next}");
    }
    assert_eq!(house.upstream.connections(), 1);
}
