//! Which addresses a name may lead to.
//!
//! Whoever configured a name may well mean a machine of the house, so private addresses are as good as others. But what a
//! name leads to is said by whoever answers for it, and nobody means one of these.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds tell machines of their identities and keys, outside of the link-local networks.
const METADATA: &[IpAddr] = &[
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure's agent on each machine.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Oracle Cloud, older machines.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // AWS.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Whether a connection may be made where a name leads. An address that the configuration spells out is not asked about.
pub(super) fn may_be_named(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if METADATA.contains(&address) {
        return false;
    }
    match address {
        IpAddr::V4(address) => may_be_named_v4(address),
        IpAddr::V6(address) => {
            let is_odd =
                address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local();
            !is_odd && within(address).is_none_or(|within| may_be_named(within.into()))
        }
    }
}

fn may_be_named_v4(address: Ipv4Addr) -> bool {
    // All of 0.0.0.0/8 is "this network", and the first of it this machine.
    let is_odd = address.octets()[0] == 0
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast();
    !is_odd
}

/// The address of version 4 that a translator or a tunnel takes out of one of version 6.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        // NAT64.
        (0x64, 0xff9b, 0, 0, 0, 0) => of(g, h),
        // 6to4.
        (0x2002, ..) => of(b, c),
        // The old way to write one as the other; the loopback is no such thing.
        (0, 0, 0, 0, 0, 0) if !address.is_loopback() => of(g, h),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_lead_to_machines_of_the_house_and_of_others_and_to_nothing_else() {
        let all = |texts: &[&str], may: bool| {
            for text in texts {
                assert_eq!(may_be_named(text.parse().unwrap()), may, "{text}");
            }
        };
        let good = [
            "127.0.0.1",
            "10.0.0.7",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "169.253.255.255",
            "169.255.0.1",
            "8.8.8.8",
            "::1",
            "fd00::1",
            "2001:4860::1",
            "::ffff:10.0.0.7",
            "64:ff9b::8.8.8.8",
        ];
        let bad = [
            "169.254.169.254",
            "169.254.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::ffff:100.100.100.200",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::ffff:0.0.0.0",
        ];
        all(&good, true);
        all(&bad, false);
    }
}
