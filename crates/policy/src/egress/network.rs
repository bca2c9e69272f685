//! Networks in rules: `10.0.0.0/8`, `fd00::/8`, or a single address.

use super::address::share;
use core::net::IpAddr;
use std::fmt;

/// Addresses with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

// === impl Network ===

impl Network {
    /// Parses a network. The bits after the prefix must be zero, because `10.1.2.3/8` is probably a mistake.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first = address.parse::<IpAddr>().ok()?;
        if first != first.to_canonical() {
            return None;
        }
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits)
                if bits.bytes().all(|byte| byte.is_ascii_digit())
                    && !(bits.len() > 1 && bits.starts_with('0')) =>
            {
                bits.parse::<u8>().ok().filter(|bits| *bits <= most)?
            }
            Some(_) => return None,
        };
        let network = Self { first, bits };
        network.begins_with_it().then_some(network)
    }

    /// Returns true if the network contains an address.
    pub fn holds(&self, address: IpAddr) -> bool {
        share(self.first, address.to_canonical(), self.bits)
    }

    fn begins_with_it(&self) -> bool {
        match self.first {
            IpAddr::V4(first) => first.to_bits().checked_shl(self.bits.into()).unwrap_or(0) == 0,
            IpAddr::V6(first) => first.to_bits().checked_shl(self.bits.into()).unwrap_or(0) == 0,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_is_parsed_from_address_and_prefix_length() {
        let good = ["10.0.0.0/8", "127.0.0.1/32", "0.0.0.0/0", "fd00::/8", "::1/128", "192.168.7.0/24"];
        for text in good {
            assert_eq!(Network::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Network::parse("127.0.0.1").unwrap().to_string(), "127.0.0.1/32");
        let bad = [
            "",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.1.2.3/8",
            "10/8",
            "fd00::/129",
            "fd00::1/64",
            "::ffff:10.0.0.0/104",
            "example.com",
            "10.0.0.0/8/8",
            " 10.0.0.0/8",
        ];
        for text in bad {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }

    #[test]
    fn network_contains_an_address_in_any_notation() {
        let house = Network::parse("10.0.0.0/8").unwrap();
        for (address, is_there) in
            [("10.255.255.255", true), ("11.0.0.0", false), ("::ffff:10.0.0.1", true), ("fd00::1", false)]
        {
            assert_eq!(house.holds(address.parse().unwrap()), is_there, "{address}");
        }
    }
}
