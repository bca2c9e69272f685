//! Any text is one host in one form, or none; and what some library takes for an address is never a name.

#![no_main]

use belljar_policy::egress::{Destination, EgressRequest, EgressPolicy, Host, HostPattern, Rule};
use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;

fuzz_target!(|text: &str| {
    let Ok(host) = Host::parse(text) else { return };
    let form = host.to_string();
    assert_eq!(Host::parse(&form).as_ref(), Ok(&host), "{form}");
    // Letter case and a trailing dot don't change the host.
    for other in [text.to_ascii_uppercase(), text.to_ascii_lowercase()] {
        assert_eq!(Host::parse(&other).as_ref(), Ok(&host), "{other}");
    }
    match &host {
        Host::Name(name) => {
            assert_eq!(Host::parse(&format!("{name}.")).as_ref(), Ok(&host));
            assert!(name.as_str().parse::<IpAddr>().is_err() && !is_number_somewhere(name.as_str()), "{name}");
        }
        Host::Address(address) => assert_eq!(*address, address.to_canonical()),
    }
    // Two spellings never get two verdicts.
    let verdict = |host: Host| policy().decide(Destination { host, port: 443 }, EgressRequest::Tunnel).is_ok();
    let is_allowed = verdict(host);
    assert_eq!(Host::parse(&form).map(verdict), Ok(is_allowed));
    let suffix = form.strip_suffix("allowed.test");
    assert_eq!(is_allowed, suffix.is_some_and(|before| before.is_empty() || before.ends_with('.')), "{form}");
});

fn policy() -> EgressPolicy {
    let rules = ["allowed.test", "**.allowed.test"];
    EgressPolicy::new(rules.into_iter().filter_map(|host| HostPattern::parse(host).ok()).map(Rule::for_hosts).collect())
}

/// Whether `inet_aton` and its kin would find an address: up to four numbers, in any base that C knows.
fn is_number_somewhere(text: &str) -> bool {
    let is_number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        None => !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit()),
    };
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() <= 4 && parts.into_iter().all(is_number)
}
