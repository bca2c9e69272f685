//! Tests of the boundaries of each block, and of addresses of neighbouring classes.

use super::*;
use proptest::prelude::*;

fn class(text: &str) -> AddressClass {
    AddressClass::of(text.parse().unwrap())
}

/// First and last address of each block, and its neighbours.
#[test]
fn address_blocks_have_the_right_bounds() {
    let edges = [
        ("0.0.0.0", "0.255.255.255", Unspecified, "", "1.0.0.0"),
        ("10.0.0.0", "10.255.255.255", Private, "9.255.255.255", "11.0.0.0"),
        ("100.64.0.0", "100.127.255.255", Shared, "100.63.255.255", "100.128.0.0"),
        ("127.0.0.0", "127.255.255.255", Loopback, "126.255.255.255", "128.0.0.0"),
        ("169.254.0.0", "169.254.255.255", LinkLocal, "169.253.255.255", "169.255.0.0"),
        ("172.16.0.0", "172.31.255.255", Private, "172.15.255.255", "172.32.0.0"),
        ("192.0.0.0", "192.0.0.191", Reserved, "191.255.255.255", ""),
        ("192.0.2.0", "192.0.2.255", Reserved, "192.0.1.255", "192.0.3.0"),
        ("192.88.99.0", "192.88.99.255", Tunnel, "192.88.98.255", "192.88.100.0"),
        ("192.168.0.0", "192.168.255.255", Private, "192.167.255.255", "192.169.0.0"),
        ("198.18.0.0", "198.19.255.255", Reserved, "198.17.255.255", "198.20.0.0"),
        ("198.51.100.0", "198.51.100.255", Reserved, "198.51.99.255", "198.51.101.0"),
        ("203.0.113.0", "203.0.113.255", Reserved, "203.0.112.255", "203.0.114.0"),
        ("224.0.0.0", "239.255.255.255", Multicast, "223.255.255.255", ""),
        ("240.0.0.0", "255.255.255.254", Reserved, "", ""),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", Tunnel, "", ""),
        ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved, "", "2001:200::"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Reserved, "2001:db7:ffff::", "2001:db9::"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Tunnel, "2001:ffff::", "2003::"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved, "3ffe:ffff::", "3fff:1000::"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private, "", ""),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LinkLocal, "", ""),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private, "", ""),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast, "", ""),
    ];
    for (first, last, expected, before, behind) in edges {
        assert_eq!((class(first), class(last)), (expected, expected), "{first} to {last}");
        for beside in [before, behind].into_iter().filter(|beside| !beside.is_empty()) {
            assert_eq!(class(beside), Global, "{beside}");
        }
    }
}

#[test]
fn special_addresses_have_their_class() {
    for (address, expected) in [
        ("255.255.255.255", Broadcast),
        ("100.100.100.200", Metadata),
        ("100.100.100.201", Shared),
        ("168.63.129.16", Metadata),
        ("168.63.129.17", Global),
        ("192.0.0.192", Metadata),
        ("fd00:ec2::254", Metadata),
        ("fd00:ec2::23", Metadata),
        ("fd00:ec3::254", Private),
        ("fd00:42::42", Metadata),
        ("fd00:42::43", Private),
        ("fd20:ce::254", Metadata),
        ("169.254.169.254", LinkLocal),
        ("::", Unspecified),
        ("::1", Loopback),
        ("::2", Tunnel),
        ("8.8.8.8", Global),
        ("2606:4700::1111", Global),
    ] {
        assert_eq!(class(address), expected, "{address}");
    }
}

#[test]
fn ipv4_embedded_in_ipv6_does_not_bypass_the_policy() {
    for (address, expected) in [
        ("::ffff:8.8.8.8", Global),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:169.254.169.254", LinkLocal),
        ("::ffff:100.100.100.200", Metadata),
        ("64:ff9b::8.8.8.8", Global),
        ("64:ff9b::127.0.0.1", Loopback),
        ("64:ff9b::10.0.0.1", Private),
        ("64:ff9b::169.254.169.254", LinkLocal),
        ("64:ff9b::168.63.129.16", Metadata),
        ("64:ff9b:1::8.8.8.8", Tunnel),
        ("::8.8.8.8", Tunnel),
        ("::127.0.0.1", Tunnel),
        ("::ffff:0:127.0.0.1", Tunnel),
        ("2002:7f00:1::", Tunnel),
        ("2001:0:7f00:1::", Tunnel),
    ] {
        assert_eq!(class(address), expected, "{address}");
    }
}

#[test]
fn unallocated_addresses_are_reserved() {
    for address in ["100::1", "1::", "4000::", "5f00::1", "8000::", "f000::", "0:0:0:1::", "64:ff9c::"] {
        assert_eq!(class(address), Reserved, "{address}");
    }
}

#[test]
fn address_block_has_a_reason_and_starts_at_its_first_address() {
    for block in BLOCKS {
        assert!(block.why.len() > 8, "{block:?}");
        assert!(block.class != Global, "{block:?}");
        let network = super::super::Network::parse(&format!("{}/{}", block.first, block.bits));
        // IPv4-mapped addresses are IPv4.
        assert!(network.is_some(), "{block:?}");
    }
}

proptest! {
    #[test]
    fn ipv4_and_ipv4_mapped_address_have_the_same_class(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        prop_assert_eq!(AddressClass::of(address.into()), AddressClass::of(address.to_ipv6_mapped().into()));
    }

    /// Where the standard library knows a class, it agrees.
    #[test]
    fn ipv4_classes_agree_with_the_standard_library(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let is_odd = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
        prop_assert!(!is_odd || AddressClass::of(address.into()) != Global, "{}", address);
    }

    #[test]
    fn ipv6_classes_agree_with_the_standard_library(bits: u128) {
        // Most addresses are in no block, so the first bits are chosen from where blocks are.
        for top in [0, 1 << 125, 0x2001 << 112, 0xfc << 120, 0xfe8 << 116, 0xff << 120, 0xffff << 32] {
            let address = Ipv6Addr::from_bits(top | (bits >> 9));
            let is_odd = address.is_loopback() || address.is_multicast() || address.is_unspecified()
                || address.is_unique_local() || address.is_unicast_link_local();
            prop_assert!(!is_odd || AddressClass::of(address.into()) != Global, "{}", address);
        }
    }
}
