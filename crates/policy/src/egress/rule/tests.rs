//! Tests that a pattern matches only its hosts.

use super::*;

fn matches(pattern: &str, host: &str) -> bool {
    HostPattern::parse(pattern).unwrap().matches(&Host::parse(host).unwrap())
}

#[test]
fn host_pattern_matches_only_its_hosts() {
    for (pattern, host, is_there) in [
        ("example.com", "example.com", true),
        ("Example.COM.", "example.com", true),
        ("example.com", "EXAMPLE.com.", true),
        ("example.com", "www.example.com", false),
        ("example.com", "evilexample.com", false),
        ("example.com", "example.com.evil", false),
        ("*.example.com", "www.example.com", true),
        ("*.example.com", "a.www.example.com", false),
        ("*.example.com", "example.com", false),
        ("*.example.com", "evilexample.com", false),
        ("*.example.com", "www.example.com.evil.org", false),
        ("**.example.com", "www.example.com", true),
        ("**.example.com", "a.b.www.example.com", true),
        ("**.example.com", "example.com", false),
        ("**.example.com", "evilexample.com", false),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "[::ffff:127.0.0.1]", true),
        ("[::1]", "[0:0:0:0:0:0:0:1]", true),
        ("127.0.0.1", "127.0.0.2", false),
        ("xn--bcher-kva.example", "XN--BCHER-KVA.example", true),
    ] {
        assert_eq!(matches(pattern, host), is_there, "{pattern} for {host}");
    }
}

#[test]
fn ambiguous_or_match_all_host_pattern_is_refused() {
    for (pattern, why) in [
        ("*", InvalidPattern::Star),
        ("**", InvalidPattern::Star),
        ("*.*", InvalidPattern::Star),
        ("*.*.example.com", InvalidPattern::Star),
        ("***.example.com", InvalidPattern::Star),
        ("www.*.com", InvalidPattern::Star),
        ("a*.example.com", InvalidPattern::Star),
        ("example.*", InvalidPattern::Star),
        ("*.com", InvalidPattern::TooWide),
        ("**.com", InvalidPattern::TooWide),
        ("*.127.0.0.1", InvalidPattern::Host(InvalidHost::AlmostAddress)),
        ("*.", InvalidPattern::Host(InvalidHost::Empty)),
        ("", InvalidPattern::Host(InvalidHost::Empty)),
        ("http://example.com", InvalidPattern::Host(InvalidHost::Character)),
        ("example.com:443", InvalidPattern::Host(InvalidHost::Character)),
    ] {
        assert_eq!(HostPattern::parse(pattern), Err(why), "{pattern}");
    }
}
