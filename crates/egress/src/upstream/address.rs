//! Addresses that the name of a configured upstream may resolve to.
//!
//! A configured name may well belong to a machine of a private network, so private addresses are allowed. But the name server
//! decides where a name leads. Addresses that no rule may grant to a sandbox are refused here, too (SSRF).

use belljar_policy::egress::address::AddressClass;
use std::net::IpAddr;

/// Returns true if a name may resolve to this address. An address in the configuration itself is not checked.
pub(super) fn may_be_named(address: IpAddr) -> bool {
    AddressClass::of(address).may_be_granted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostname_may_resolve_to_private_and_public_but_not_special_addresses() {
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
