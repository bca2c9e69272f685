//! NT2: names below a wildcard rule. Their name server gets only a limited number of questions.

use super::house::{ProxyRig, WebAnswer, leads, outcome};
use crate::tls::authority::{Authority, NOW};

const BELOW: &str =
    "- {host: \"**.zone.test\", ports: [PORT], networks: [127.0.0.0/8], names: {at_once: 20, an_hour: 1}}\n";

/// Number of questions for a name: both address types.
const QUESTIONS: usize = 2;

fn house(rules: &str) -> ProxyRig {
    let house = ProxyRig::with(rules);
    house.names.set(vec![("*.zone.test", leads(&["127.0.0.1"])), ("up.test", leads(&["127.0.0.1"]))]);
    house
}

fn get(house: &ProxyRig, name: &str) -> WebAnswer {
    house.get(&format!("http://{name}:PORT/"))
}

#[test]
fn data_encoded_in_subdomains_is_denied_without_a_name_lookup() {
    let house = house(BELOW);
    let file = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for name in [
        format!("{}.{}.zone.test", &file[..63], &file[63..]),
        format!("{}.{}.zone.test", &file[..32], &file[32..]),
        format!("{}.zone.test", ["mzxw6ytboi2gk3tfnvqx"; 8].join(".")),
        format!("{}.zone.test", vec!["a"; 100].join(".")),
    ] {
        let denied = get(&house, &name);
        assert_eq!((denied.status, denied.code()), (403, "name_says_too_much"), "{name}: {denied:?}");
        let denied = house.tunnel(&format!("{name}:PORT")).unwrap_err();
        assert_eq!((denied.status, denied.code()), (403, "name_says_too_much"), "{name}: {denied:?}");
        // The needed rule names it.
        let needed = format!("{{host: \\\"{name}\\\", ports: [");
        assert!(denied.text.contains(&needed), "{denied:?}");
    }
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
    house.ledger.latest(8);
    assert!(house.ledger.ended().iter().all(|record| outcome(record) == "denied: name_says_too_much"));
    // Control: a usual name.
    assert_eq!(get(&house, "d111111abcdef8.zone.test").status, 200);
    assert_eq!(house.names.asked(), QUESTIONS);
}

#[test]
fn number_of_different_wildcard_names_is_limited_and_repeats_are_free() {
    let house =
        house(&format!("{BELOW}- {{host: named.zone.test, ports: [PORT], networks: [127.0.0.0/8]}}\n"));
    let codes: Vec<u16> = (0..40).map(|number| get(&house, &format!("n{number}.zone.test")).status).collect();
    assert_eq!(codes, [[200; 20], [403; 20]].concat());
    assert_eq!(house.names.asked(), 20 * QUESTIONS);
    let denied = get(&house, "another.zone.test");
    assert_eq!((denied.status, denied.code()), (403, "too_many_names"), "{denied:?}");
    assert!(denied.text.contains("its limit of different names under a wildcard rule"), "{denied:?}");
    let tunnel = house.tunnel("another.zone.test:PORT").unwrap_err();
    assert_eq!((tunnel.status, tunnel.code()), (403, "too_many_names"));
    assert_eq!(house.names.asked(), 20 * QUESTIONS, "the denied name is not looked up");
    assert_eq!(outcome(&house.ledger.latest(42)), "denied: too_many_names");
    let noted = house
        .run
        .denials()
        .listed
        .into_iter()
        .find(|denial| denial.destination.host.to_string().starts_with("another"));
    assert_eq!(noted.unwrap().reason, "too_many_names");
    // Controls: known names in any spelling; one that a rule names; and one of another run.
    for name in ["n0.zone.test", "N1.Zone.Test.", "n19.zone.test", "named.zone.test"] {
        assert_eq!(get(&house, name).status, 200, "{name}");
    }
    let (other, port) = (self::house(BELOW), house.port());
    assert_ne!(other.port(), port);
    assert_eq!(get(&other, "another.zone.test").status, 200);
}

#[test]
fn policy_reload_keeps_the_name_count_and_may_raise_its_limit() {
    let house = house(BELOW);
    let count = |from: u32, to: u32| {
        (from..to).filter(|number| get(&house, &format!("n{number}.zone.test")).status == 200).count()
    };
    assert_eq!(count(0, 30), 20);
    house.replace(&format!("{BELOW}- {{host: else.test}}\n"));
    assert_eq!(count(30, 60), 0);
    house.replace(&BELOW.replace("at_once: 20", "at_once: 25"));
    assert_eq!(count(60, 90), 5);
}

/// A package manager requests some hundred names, which the defaults allow.
#[test]
fn default_name_limit_permits_hundreds_of_names() {
    let house = house("- {host: \"**.zone.test\", ports: [PORT], networks: [127.0.0.0/8]}\n");
    let regions = ["eu-west-1", "us-east-2", "ap-south-1"];
    for number in 0..500 {
        let name = format!("d{number:x}c{:05x}b.{}.zone.test", number * 7_919, regions[number % 3]);
        assert_eq!(get(&house, &name).status, 200, "{name}");
    }
    assert_eq!(house.names.asked(), 500 * QUESTIONS);
}

#[test]
fn intercepted_tunnel_counts_its_name_once() {
    let authority = Authority::new("house");
    let section = "rules:
- {host: \"*.zone.test\", ports: [PORT], methods: [GET], networks: [127.0.0.0/8], names: {at_once: 1, an_hour: 1}}
authorities: CA
";
    let house = ProxyRig::looking_into(section, authority.server("one.zone.test", NOW), &authority);
    house.names.set(vec![("*.zone.test", leads(&["127.0.0.1"]))]);
    let ask = |name: &str| {
        let asked = format!("GET / HTTP/1.1\r\nHost: {name}:PORT\r\nConnection: close\r\n\r\n");
        house.ask_inside(&format!("{name}:PORT"), name, asked.as_bytes())
    };
    for _ in 0..3 {
        assert_eq!(ask("one.zone.test").unwrap().status, 200);
    }
    assert!(ask("two.zone.test").unwrap_err().contains("too_many_names"));
    assert_eq!(house.names.asked(), 3 * QUESTIONS);
}
