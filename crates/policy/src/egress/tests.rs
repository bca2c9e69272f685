//! Tests of what rules allow, where names may lead, and what a denied client learns.

use super::address::AddressClass;
use super::*;
use belljar_contract::yaml::{MistakeLog, parse};
use core::net::IpAddr;
use proptest::prelude::*;

pub(super) fn policy(yaml: &str) -> EgressPolicy {
    let mut log = MistakeLog::default();
    let policy = parse(yaml.as_bytes(), &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    log.finish().unwrap();
    policy.unwrap()
}

fn mistakes(yaml: &str) -> Vec<String> {
    let mut log = MistakeLog::default();
    let _ = parse(yaml.as_bytes(), &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    log.finish().unwrap_err().as_slice().iter().map(ToString::to_string).collect()
}

pub(super) fn to(host: &str, port: u16) -> Destination {
    Destination { host: Host::parse(host).unwrap(), port }
}

/// Returns the decision about `METHOD PATH` there, or about a tunnel: `allowed`, or the code.
fn verdict(policy: &EgressPolicy, host: &str, port: u16, asked: &str) -> &'static str {
    let asked = match asked.split_once(' ') {
        Some((method, path)) => EgressRequest::Request { method, path },
        None => EgressRequest::Tunnel,
    };
    match policy.decide(to(host, port), asked) {
        Ok(_) => "allowed",
        Err(denied) => denied.reason.code(),
    }
}

pub(super) const RULES: &str = r#"
rules:
  - host: pkgs.example
  - {host: "*.files.example", ports: [443]}
  - {host: api.example.com, methods: [GET, HEAD], paths: [/v1/, /health]}
  - {host: api.example.com, methods: [POST], paths: [/v2/upload]}
  - {host: git.house, ports: [3000], networks: [10.0.0.0/8]}
  - {host: looked.example.com, inspect: true}
"#;

#[test]
fn destination_without_a_matching_rule_is_denied() {
    let policy = policy(RULES);
    for (host, port, asked, expected) in [
        ("pkgs.example", 443, "tunnel", "allowed"),
        ("pkgs.example", 80, "GET /simple/", "allowed"),
        ("pkgs.example", 22, "tunnel", "no_rule_for_port"),
        ("evilpkgs.example", 443, "tunnel", "no_rule_for_host"),
        ("pkgs.example.evil.com", 443, "tunnel", "no_rule_for_host"),
        ("files.files.example", 443, "tunnel", "allowed"),
        ("files.files.example", 80, "GET /", "no_rule_for_port"),
        ("a.files.files.example", 443, "tunnel", "no_rule_for_host"),
        ("api.example.com", 443, "tunnel", "allowed"),
        ("api.example.com", 443, "GET /v1/a", "allowed"),
        ("api.example.com", 443, "HEAD /health?x", "allowed"),
        ("api.example.com", 443, "GET /v10", "no_rule_for_path"),
        ("api.example.com", 443, "POST /v1/a", "no_rule_for_path"),
        ("api.example.com", 443, "POST /v2/upload", "allowed"),
        ("api.example.com", 443, "DELETE /v1/a", "no_rule_for_method"),
        ("api.example.com", 443, "get /v1/a", "no_rule_for_method"),
        ("api.example.com", 443, "GET /v1/../v2", "ambiguous_path"),
        ("api.example.com", 443, "GET /v1/%2e%2e/v2", "ambiguous_path"),
        ("pkgs.example", 80, "GET /a/../b", "allowed"),
        ("git.house", 3000, "tunnel", "allowed"),
        ("93.184.216.34", 443, "tunnel", "no_rule_for_host"),
    ] {
        assert_eq!(verdict(&policy, host, port, asked), expected, "{asked} of {host}:{port}");
    }
    assert_eq!(verdict(&EgressPolicy::default(), "pkgs.example", 443, "tunnel"), "no_rules");
}

#[test]
fn tunnel_is_inspected_if_any_matching_rule_requires_it() {
    let policy = policy(RULES);
    let inspected = |host: &str| policy.decide(to(host, 443), EgressRequest::Tunnel).unwrap().is_inspected();
    assert!(inspected("api.example.com") && inspected("looked.example.com"));
    assert!(!inspected("pkgs.example"));
}

#[test]
fn rule_order_does_not_change_the_decision() {
    let forward = policy(RULES);
    let mut rules = forward.rules().to_vec();
    rules.reverse();
    let backward = EgressPolicy::new(rules);
    for host in ["pkgs.example", "api.example.com", "git.house", "a.files.example", "other.example"] {
        for port in [80, 443, 3000] {
            for asked in ["tunnel", "GET /v1/x", "POST /v2/upload", "PUT /"] {
                let both = [&forward, &backward].map(|policy| verdict(policy, host, port, asked));
                assert_eq!(both[0], both[1], "{asked} of {host}:{port}");
            }
        }
    }
}

#[test]
fn denial_names_the_missing_permission_but_not_the_rules() {
    let policy = policy(RULES);
    let needed = |host: &str, port, asked| {
        policy.decide(to(host, port), asked).unwrap_err().needed().unwrap_or_default().to_owned()
    };
    assert_eq!(
        needed("other.example", 443, EgressRequest::Tunnel),
        r#"{host: "other.example", ports: [443]}"#
    );
    assert_eq!(
        needed("api.example.com", 443, EgressRequest::Request { method: "DELETE", path: "/v1/a" }),
        r#"{host: "api.example.com", ports: [443], methods: [DELETE]}"#
    );
    // The address is known, so the needed rule names its network. Some addresses no rule can allow.
    assert_eq!(
        needed("10.0.0.1", 80, EgressRequest::Request { method: "GET", path: "/" }),
        r#"{host: "10.0.0.1", ports: [80], methods: [GET], networks: ["10.0.0.1"]}"#
    );
    assert_eq!(needed("169.254.169.254", 80, EgressRequest::Tunnel), "");
    // The needed rule is enough.
    for (host, port) in
        [("other.example", 443), ("pkgs.example", 8080), ("93.184.216.34", 443), ("[2606:4700::1]", 80)]
    {
        let rule = needed(host, port, EgressRequest::Tunnel);
        let granted = self::policy(&format!("rules:\n- {rule}\n"));
        assert_eq!(verdict(&granted, host, port, "tunnel"), "allowed", "{rule}");
    }
    let denied = policy.decide(to("pkgs.example", 443), EgressRequest::Tunnel).unwrap();
    let denied = denied.vet(&["10.0.0.1".parse().unwrap()], &[]).unwrap_err();
    assert_eq!(denied.needed(), Some(r#"{host: "pkgs.example", ports: [443], networks: ["10.0.0.1"]}"#));
    assert_eq!(denied.to_string(), "pkgs.example:443 is denied: it resolves to 10.0.0.1, a private address");
    // The needed rule names all networks; one address that can't be granted leaves no rule.
    let leading_to = |addresses: &[&str]| {
        let found: Vec<_> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let allowed = policy.decide(to("pkgs.example", 443), EgressRequest::Tunnel).unwrap();
        allowed.vet(&found, &[]).unwrap_err().needed().unwrap_or_default().to_owned()
    };
    let both = leading_to(&["10.0.0.1", "93.184.216.34", "192.168.0.1"]);
    assert_eq!(both, r#"{host: "pkgs.example", ports: [443], networks: ["10.0.0.1", "192.168.0.1"]}"#);
    assert_eq!(leading_to(&["10.0.0.1", "169.254.0.1"]), "");
}

#[test]
fn long_dns_name_requires_an_exact_or_permitting_rule() {
    let rules = r#"
rules:
  - {host: "**.example.com", ports: [443]}
  - {host: "*.files.example.com", ports: [443, 80], names: {characters: 5}}
  - {host: "*.long.example.com", ports: [443], names: {characters: 253, bits: 1328}}
  - {host: "a-host-that-an-admin-has-named-in-full.files.example.com", ports: [80]}
"#;
    let policy = policy(rules);
    let file = "q7w2e9r4t5y6u1i8o3p0as2d4f6g8h1j3k5l7z9x0cv2b4n6m8q1w3e5r7t9";
    for (host, port, expected) in [
        ("a.example.com".to_owned(), 443, "allowed"),
        (format!("{file}.example.com"), 443, "name_says_too_much"),
        (format!("{file}.example.com"), 80, "no_rule_for_port"),
        // A name that one rule allows is allowed.
        ("longer.files.example.com".to_owned(), 443, "allowed"),
        ("longer.files.example.com".to_owned(), 80, "name_says_too_much"),
        ("short.files.example.com".to_owned(), 80, "allowed"),
        (format!("{file}.long.example.com"), 443, "allowed"),
        (format!("{file}.{file}.long.example.com"), 443, "name_says_too_much"),
        ("a-host-that-an-admin-has-named-in-full.files.example.com".to_owned(), 80, "allowed"),
    ] {
        assert_eq!(verdict(&policy, &host, port, "tunnel"), expected, "{host}:{port}");
    }
    let looked_into = self::policy(
        "rules:\n- {host: '*.a.example', inspect: true}\n- {host: '**.a.example', names: {characters: 253, bits: 1328}}\n",
    );
    let allowed = looked_into.decide(to(&format!("{file}.a.example"), 443), EgressRequest::Tunnel).unwrap();
    assert!(allowed.is_inspected() && allowed.wildcards().len() == 1, "{allowed:?}");
    // The result names the patterns that allowed the name; none if a rule names it.
    let by = |host: &str, port| {
        let allowed = policy.decide(to(host, port), EgressRequest::Tunnel).unwrap();
        allowed.wildcards().iter().map(|wildcard| wildcard.pattern.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(by("short.files.example.com", 443), ["**.example.com", "*.files.example.com"]);
    assert_eq!(by("a-host-that-an-admin-has-named-in-full.files.example.com", 80), [""; 0]);
}

#[test]
fn every_egress_policy_error_is_reported() {
    let told = mistakes(
        "rules:\n- host: '*'\n- host: a.example\n  ports: []\n- ports: [0]\n- host: b.example\n  methods: [get]\n  \
         paths: [v1]\n  networks: [10.1.2.3/8]\n  inspekt: true\n- {host: c.example, names: {at_once: 5}}\n\
         - {host: '*.d.example', names: {at_once: 0, an_hour: 1000001, characters: 254, bits: x, more: 1}}\n",
    );
    let all = told.join("\n");
    for part in [
        "rules[0].host",
        "rules[1].ports",
        "rules[2].host",
        "rules[2].ports[0]",
        "methods[0]",
        "paths[0]",
        "networks[0]",
        "inspekt",
        "`names` for one host",
        "names.at_once",
        "names.an_hour",
        "names.characters",
        "names.bits",
        "names.more",
    ] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
}

#[test]
fn policy_intercepts_tls_if_a_rule_requires_it_or_git_is_denied() {
    let plain = policy("rules: [{host: a.example}]");
    assert!(!plain.looks_inside() && !EgressPolicy::default().looks_inside());
    assert!(plain.clone().refusing_pushes().looks_inside());
    assert!(plain.clone().refusing_fetches().looks_inside());
    for one in ["inspect: true", "methods: [GET]", "paths: [/a/]", "credentials: [c]"] {
        let policy = policy(&format!("rules: [{{host: a.example}}, {{host: b.example, {one}}}]"));
        assert!(policy.looks_inside(), "{one}");
        let inspected = |host| policy.decide(to(host, 443), EgressRequest::Tunnel).unwrap().is_inspected();
        assert!(inspected("b.example") && !inspected("a.example"), "{one}");
    }
}

#[test]
fn allowed_destination_names_its_rule_and_credentials() {
    let policy = policy(
        "rules: [{host: a.example}, {host: b.example, credentials: [one, Two_2]}, {host: c.example},
          {host: '*.b.example', credentials: [three]}, {host: x.b.example, credentials: [four]}]",
    );
    for (host, rule, credentials) in [
        ("a.example", 0, vec![]),
        ("b.example", 1, vec!["one", "Two_2"]),
        ("c.example", 2, vec![]),
        ("y.b.example", 3, vec!["three"]),
        ("x.b.example", 3, vec!["three", "four"]),
    ] {
        let allowed = policy.decide(to(host, 443), EgressRequest::Tunnel).unwrap();
        assert_eq!((allowed.rule(), allowed.credentials()), (rule, &*strings(&credentials)), "{host}");
        let vetted = allowed.vet(&["93.184.216.34".parse().unwrap()], &[]).unwrap();
        assert_eq!((vetted.rule(), vetted.credentials()), (rule, &*strings(&credentials)), "{host}");
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn get_with_a_body_is_denied_by_rules_that_restrict_requests() {
    let policy = policy(
        "rules: [{host: a.example}, {host: m.example, methods: [GET, POST]}, {host: p.example, paths: [/]},
          {host: i.example, inspect: true}, {host: b.example}, {host: b.example, methods: [GET, POST]}]",
    );
    for (host, method, may) in [
        ("a.example", "GET", true),
        ("a.example", "POST", true),
        ("i.example", "GET", true),
        ("m.example", "GET", false),
        ("m.example", "POST", true),
        ("p.example", "GET", false),
        ("p.example", "HEAD", false),
        ("p.example", "TRACE", false),
        ("p.example", "PUT", true),
        // If one rule has no conditions on requests, any body is allowed.
        ("b.example", "GET", true),
    ] {
        let asked = EgressRequest::Request { method, path: "/" };
        let allowed = policy.decide(to(host, 443), asked).unwrap();
        assert_eq!(allowed.may_have_content(method), may, "{method} {host}");
    }
}

#[test]
fn credential_names_are_short_and_plain() {
    let longest = "x".repeat(64);
    for good in ["a", "Z", "9", "-", "_", "my-key_2", &longest] {
        assert!(is_credential_name(good), "{good}");
        let policy = policy(&format!("rules: [{{host: a.example, credentials: ['{good}']}}]"));
        assert_eq!(policy.rules()[0].credentials, [good]);
    }
    let too_long = "x".repeat(65);
    for bad in ["", "a.b", "a b", "a}", "a/b", "é", "a\u{0}", &too_long] {
        assert!(!is_credential_name(bad), "{bad:?}");
    }
    let told = mistakes("rules: [{host: a.example, credentials: [good, 'not good']}]");
    assert_eq!(
        told,
        ["1:47: rules[0].credentials[1]: found \"not good\"; expected 1 to 64 letters, digits, `-` and `_`"]
    );
}

proptest! {
    /// A name is not dialed if one of its addresses is outside the public internet and no rule names its network, however many
    /// public ones it has.
    #[test]
    fn forbidden_addresses_are_never_vetted(bits: u128, is_v4: bool, place in 0_usize..4) {
        let bad = if is_v4 { IpAddr::V4(((bits >> 96) as u32).into()) } else { IpAddr::V6(bits.into()) };
        prop_assume!(AddressClass::of(bad) != AddressClass::Global);
        let mut found: Vec<IpAddr> = vec!["93.184.216.34".parse().unwrap(); 3];
        found.insert(place, bad);
        let allowed = policy("rules: [{host: a.example}]").decide(to("a.example", 443), EgressRequest::Tunnel).unwrap();
        prop_assert!(allowed.vet(&found, &[]).is_err());
    }
}
