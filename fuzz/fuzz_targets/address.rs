//! An address has one class however it is written, and what no rule may grant is never dialed whatever a rule says.

#![no_main]

use belljar_policy::egress::address::AddressClass;
use belljar_policy::egress::{AllowedDestination, Destination, EgressRequest, EgressPolicy, Host, HostPattern, Network, Rule};
use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fuzz_target!(|bytes: [u8; 16]| {
    let v6 = Ipv6Addr::from(bytes);
    let v4 = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
    for address in [IpAddr::V6(v6), IpAddr::V4(v4)] {
        let class = AddressClass::of(address);
        assert_eq!(AddressClass::of(address.to_canonical()), class, "{address}");
        let text = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        assert_eq!(Host::parse(&text), Ok(Host::Address(address.to_canonical())), "{text}");
        // By a name that leads there: without networks, and with all of them.
        let is_dialed = |networks: &[&str]| allowed(networks).vet(&[address], &[]).is_ok();
        assert_eq!(is_dialed(&[]), class == AddressClass::Global, "{address} is {class:?}");
        assert_eq!(is_dialed(&["0.0.0.0/0", "::/0"]), class.may_be_granted(), "{address} is {class:?}");
        // One bad address among good ones is enough.
        let among = [IpAddr::from([93, 184, 216, 34]), address];
        assert_eq!(allowed(&[]).vet(&among, &[]).is_ok(), class == AddressClass::Global, "{address}");
        // This machine's own is never of the open internet.
        assert!(allowed(&[]).vet(&[address], &[address]).is_err(), "{address}");
    }
    // An IPv4 address embedded in an IPv6 address has the class of the IPv4 address.
    let class = AddressClass::of(v4.into());
    assert_eq!(AddressClass::of(v4.to_ipv6_mapped().into()), class, "{v4}");
    let [a, b, c, d] = v4.octets().map(u16::from);
    let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a << 8 | b, c << 8 | d);
    assert_eq!(AddressClass::of(translated.into()), class, "{translated}");
    let relayed = Ipv6Addr::new(0x2002, a << 8 | b, c << 8 | d, 0, 0, 0, 0, 1);
    assert!(!AddressClass::of(relayed.into()).may_be_granted(), "{relayed}");
});

fn allowed(networks: &[&str]) -> AllowedDestination<Destination> {
    let pattern = HostPattern::parse("a.test").expect("a name");
    let networks = networks.iter().filter_map(|network| Network::parse(network)).collect();
    let policy = EgressPolicy::new(vec![Rule { networks, ..Rule::for_hosts(pattern) }]);
    let host = Host::parse("a.test").expect("a name");
    policy.decide(Destination { host, port: 443 }, EgressRequest::Tunnel).expect("a rule for it")
}
