//! What kind of address one is, and why only some may be dialed for a sandbox.
//!
//! A name that a rule allows may still lead anywhere: whoever answers for it says where. So every address is looked up here
//! before it is dialed, and only one of the open internet is dialed without a rule that names its network.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// One of the open internet.
    Global,
    /// No address, or one of "this network": to the kernel, this machine.
    Unspecified,
    /// This machine.
    Loopback,
    /// Whoever is on the same wire; on clouds, the machine's metadata.
    LinkLocal,
    /// Where a cloud tells a machine of its identity and keys, outside of the link-local networks.
    Metadata,
    /// A network of the house.
    Private,
    /// Behind a carrier's translator (RFC 6598).
    Shared,
    /// To many at once.
    Multicast,
    /// Everybody on the wire.
    Broadcast,
    /// Set aside for documents, measurements, protocols or the future.
    Reserved,
    /// An address of version 4 in a tunnel's, which somebody else unpacks.
    Tunnel,
}

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The first of them.
    pub first: IpAddr,
    /// How many bits they share.
    pub bits: u8,
    /// What they are.
    pub class: AddressClass,
    /// What they are for, and by which document.
    pub why: &'static str,
}

const fn v4(address: [u8; 4], bits: u8, class: AddressClass, why: &'static str) -> Block {
    let [a, b, c, d] = address;
    Block { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits, class, why }
}

const fn v6(segments: [u16; 8], bits: u8, class: AddressClass, why: &'static str) -> Block {
    let [a, b, c, d, e, f, g, h] = segments;
    Block { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits, class, why }
}

use AddressClass::{
    Broadcast, Global, LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared, Tunnel,
    Unspecified,
};

/// Every block that is not of the open internet; the first that holds an address says what it is.
pub const BLOCKS: &[Block] = &[
    // Single addresses first: they lie in blocks of another kind, or in none.
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

/// The only part of version 6 that is given out for the open internet (RFC 4291).
const OPEN_V6: Block = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, Global, "the open internet");

/// A translator's, which everybody may have: what counts is what it translates to (RFC 6052).
const NAT64: Block = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Global, "version 4, by a translator");

// === impl AddressClass ===

impl AddressClass {
    /// What kind of address that is. An address of version 4 written as one of version 6 is what it is of version 4.
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

    /// Whether a rule that names its network may have it dialed. No rule means the others, whatever it says.
    pub const fn may_be_granted(self) -> bool {
        matches!(self, Global | Loopback | Private | Shared | Reserved)
    }

    /// The stable code of a refusal for it.
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

// === impl Block ===

impl Block {
    /// Whether an address is one of them. None of version 4 is one of version 6.
    pub fn holds(&self, address: IpAddr) -> bool {
        share(self.first, address, self.bits)
    }
}

/// Whether two addresses of one kind begin with so many equal bits.
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
