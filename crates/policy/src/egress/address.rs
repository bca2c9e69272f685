//! Classes of addresses, which decide what may be dialed for a sandbox.
//!
//! An allowed name may resolve to any address, because its name server decides. So every address is checked before it is dialed
//! (SSRF). Only a public address is dialed without a rule that names its network.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Class of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Public internet.
    Global,
    /// No address, or one of "this network"; the kernel takes it for this machine.
    Unspecified,
    /// This machine.
    Loopback,
    /// Hosts on the same link; in clouds, the metadata service.
    LinkLocal,
    /// Metadata service of a cloud outside of the link-local networks, which hands out identities and keys.
    Metadata,
    /// Private network.
    Private,
    /// Shared address space behind a carrier's NAT (RFC 6598).
    Shared,
    /// Multicast.
    Multicast,
    /// Broadcast on the link.
    Broadcast,
    /// Reserved for documentation, benchmarks, protocols or the future.
    Reserved,
    /// IPv4 address within a tunnel address that another host unpacks.
    Tunnel,
}

/// Block of addresses with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock {
    /// First address.
    pub first: IpAddr,
    /// Length of the prefix in bits.
    pub bits: u8,
    /// Class of the addresses.
    pub class: AddressClass,
    /// Purpose of the block, and the document that defines it.
    pub why: &'static str,
}

const fn v4(address: [u8; 4], bits: u8, class: AddressClass, why: &'static str) -> AddressBlock {
    let [a, b, c, d] = address;
    AddressBlock { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits, class, why }
}

const fn v6(segments: [u16; 8], bits: u8, class: AddressClass, why: &'static str) -> AddressBlock {
    let [a, b, c, d, e, f, g, h] = segments;
    AddressBlock { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits, class, why }
}

use AddressClass::{
    Broadcast, Global, LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Tunnel,
    Unspecified,
};

/// All blocks outside the public internet. The first block that contains an address decides its class.
pub const BLOCKS: &[AddressBlock] = &[
    // Single addresses first: they lie in blocks of another class, or in none.
    v4([100, 100, 100, 200], 32, Metadata, "Alibaba Cloud's metadata"),
    v4([168, 63, 129, 16], 32, Metadata, "Azure's agent on each machine"),
    v4([192, 0, 0, 192], 32, Metadata, "Oracle Cloud's metadata on older machines"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, Metadata, "AWS's metadata, credentials, names and time"),
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, Metadata, "Oracle Cloud's metadata"),
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, Metadata, "Scaleway's metadata"),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Metadata, "Google Cloud's metadata"),
    v4([255, 255, 255, 255], 32, Broadcast, "everybody on this wire (RFC 919)"),
    v4([0, 0, 0, 0], 8, Unspecified, "this network (RFC 791): Linux takes the first for itself"),
    v4([10, 0, 0, 0], 8, Private, "private (RFC 1918)"),
    v4([100, 64, 0, 0], 10, Shared, "between a carrier and its customers (RFC 6598)"),
    v4([127, 0, 0, 0], 8, Loopback, "this machine (RFC 1122)"),
    v4([169, 254, 0, 0], 16, LinkLocal, "this wire (RFC 3927), and the metadata of most clouds"),
    v4([172, 16, 0, 0], 12, Private, "private (RFC 1918)"),
    v4([192, 0, 0, 0], 24, Reserved, "protocols (RFC 6890)"),
    v4([192, 0, 2, 0], 24, Reserved, "documents (RFC 5737)"),
    v4([192, 88, 99, 0], 24, Tunnel, "relays of 6to4, given up (RFC 7526)"),
    v4([192, 168, 0, 0], 16, Private, "private (RFC 1918)"),
    v4([198, 18, 0, 0], 15, Reserved, "measurements (RFC 2544)"),
    v4([198, 51, 100, 0], 24, Reserved, "documents (RFC 5737)"),
    v4([203, 0, 113, 0], 24, Reserved, "documents (RFC 5737)"),
    v4([224, 0, 0, 0], 4, Multicast, "many at once (RFC 5771)"),
    v4([240, 0, 0, 0], 4, Reserved, "the future (RFC 1112)"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, Unspecified, "no address (RFC 4291)"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback, "this machine (RFC 4291)"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, Tunnel, "version 4 as it was once written in version 6 (RFC 4291)"),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Tunnel, "version 4, translated without state (RFC 2765)"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Tunnel, "a translator of the house (RFC 8215)"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Reserved, "thrown away (RFC 6666)"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Tunnel, "Teredo (RFC 4380)"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Reserved, "protocols (RFC 2928)"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Reserved, "documents (RFC 3849)"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Tunnel, "6to4 (RFC 3056)"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Reserved, "documents (RFC 9637)"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Private, "unique and local (RFC 4193)"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, LinkLocal, "this wire (RFC 4291)"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Private, "this site, given up (RFC 3879)"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Multicast, "many at once (RFC 4291)"),
];

/// The only part of IPv6 that is assigned for the public internet (RFC 4291).
const OPEN_V6: AddressBlock = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Global, "the open internet");

/// NAT64 prefix, which any network may use: the translated IPv4 address counts (RFC 6052).
const NAT64: AddressBlock = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Global, "version 4, by a translator");

// === impl AddressClass ===

impl AddressClass {
    /// Returns the class of an address. An IPv4-mapped IPv6 address has the class of its IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if let Some(block) = BLOCKS.iter().find(|block| block.holds(address)) {
            return block.class;
        }
        match address {
            IpAddr::V4(_) => Global,
            IpAddr::V6(address) if NAT64.holds(address.into()) => {
                let [.., a, b, c, d] = address.octets();
                Self::of(Ipv4Addr::new(a, b, c, d).into())
            }
            IpAddr::V6(address) if OPEN_V6.holds(address.into()) => Global,
            IpAddr::V6(_) => Reserved,
        }
    }

    /// Returns true if a rule that names its network may allow it. Other classes are never allowed.
    pub const fn may_be_granted(self) -> bool {
        matches!(self, Global | Loopback | Private | Shared | Reserved)
    }

    /// Returns the stable code of a refusal.
    pub const fn code(self) -> &'static str {
        match self {
            Global => "global_address",
            Unspecified => "unspecified_address",
            Loopback => "loopback_address",
            LinkLocal => "link_local_address",
            Metadata => "metadata_address",
            Private => "private_address",
            Shared => "shared_address",
            Multicast => "multicast_address",
            Broadcast => "broadcast_address",
            Reserved => "reserved_address",
            Tunnel => "tunnel_address",
        }
    }
}

// === impl AddressBlock ===

impl AddressBlock {
    /// Returns true if the block contains an address. IPv4 and IPv6 are never mixed.
    pub fn holds(&self, address: IpAddr) -> bool {
        share(self.first, address, self.bits)
    }
}

/// Returns true if two addresses of one family share a prefix of that length.
pub(super) fn share(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differ = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= u32::from(bits)
}

#[cfg(test)]
mod tests;
