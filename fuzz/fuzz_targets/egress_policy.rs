//! Any bytes are a policy or have mistakes; and no policy leads where none may.

#![no_main]

use belljar_contract::yaml::{MistakeLog, parse};
use belljar_policy::egress::{Destination, EgressRequest, EgressPolicy, Host, HostPattern};
use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;

const FORBIDDEN: [&str; 6] =
    ["169.254.169.254", "[fd00:ec2::254]", "0.0.0.0", "255.255.255.255", "[ff02::1]", "[2002:7f00:1::]"];

fuzz_target!(|bytes: &[u8]| {
    let mut log = MistakeLog::default();
    let policy = parse(bytes, &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    let policy = match log.finish() {
        Err(mistakes) => {
            let told = mistakes.to_string();
            assert!(!told.is_empty() && !told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
            return;
        }
        Ok(()) => policy.unwrap_or_default(),
    };
    for rule in policy.rules() {
        assert!(!rule.ports.is_empty() && !rule.ports.contains(&0), "{rule:?}");
        let form = rule.host.to_string();
        assert_eq!(HostPattern::parse(&form).as_ref(), Ok(&rule.host), "{form}");
    }
    for port in policy.rules().iter().flat_map(|rule| rule.ports.clone()).take(20) {
        for forbidden in FORBIDDEN {
            let host = Host::parse(forbidden).expect("an address");
            let address: IpAddr = forbidden.trim_matches(['[', ']']).parse().expect("an address");
            let allowed = policy.decide(Destination { host, port }, EgressRequest::Tunnel);
            assert!(!allowed.is_ok_and(|allowed| allowed.vet(&[address], &[]).is_ok()), "{forbidden}");
        }
    }
    // No rules, no destination.
    if policy.rules().is_empty() {
        let host = Host::parse("a.test").expect("a name");
        assert!(policy.decide(Destination { host, port: 443 }, EgressRequest::Tunnel).is_err());
    }
});
