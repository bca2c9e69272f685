//! Which addresses a name of a configured upstream may lead to.
//!
//! Whoever configured a name may well mean a machine of the house, so private addresses are as good as others. But what a
//! name leads to is said by whoever answers for it, and nobody means one of those that no rule may grant a sandbox either.

use belljar_policy::egress::address::AddressClass;
use std::net::IpAddr;

/// Whether a connection may be made where a name leads. An address that the configuration spells out is not asked about.
pub(super) fn may_be_named(address: IpAddr) -> bool {
    AddressClass::of(address).may_be_granted()
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
