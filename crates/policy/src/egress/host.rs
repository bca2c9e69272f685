//! Canonical hosts, so that two spellings of one host never get two decisions. A text that two libraries would read differently
//! is refused.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

/// Host in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// DNS name: in lower case, without a trailing dot.
    Name(HostName),
    /// IP address. An IPv4 address is never written as IPv6.
    Address(IpAddr),
}

/// DNS name in lower case, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Reason why a text is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is longer than a name may be.
    #[error("a name may have at most 253 characters, and each label at most 63")]
    TooLong,
    /// The text has a character that no name has.
    #[error("a name may contain only letters, digits, `-`, `_` and dots")]
    Character,
    /// The text has letters outside of ASCII.
    #[error("a name with non-ASCII letters must be in its encoded form, `xn--…`")]
    Unicode,
    /// A label is empty, or has an invalid first or last character.
    #[error("each label of a name must begin and end with a letter or digit")]
    Part,
    /// Some libraries would take the text for an address, and for different ones.
    #[error("an IPv4 address must have four decimal numbers without leading zeros")]
    AlmostAddress,
    /// The text between brackets is no IPv6 address, or has a zone.
    #[error("the brackets must contain an IPv6 address without a zone")]
    Brackets,
}

const MOST: usize = 253;
const MOST_OF_PART: usize = 63;

// === impl Host ===

impl Host {
    /// Parses the host of a URL or of `HOST:PORT`.
    ///
    /// # Errors
    /// [`InvalidHost`], with the reason.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(InvalidHost::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| InvalidHost::Brackets)?;
            return Ok(Self::Address(IpAddr::from(address).to_canonical()));
        }
        // A trailing dot doesn't change a name or an address.
        let plain = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = plain.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        HostName::parse(plain).map(Self::Name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

// === impl HostName ===

impl HostName {
    /// Parses a name without a trailing dot.
    ///
    /// # Errors
    /// [`InvalidHost`], with the reason.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if text.is_empty() {
            return Err(InvalidHost::Empty);
        }
        if !text.is_ascii() {
            return Err(InvalidHost::Unicode);
        }
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !text.bytes().all(is_inside) {
            return Err(InvalidHost::Character);
        }
        if text.len() > MOST || text.split('.').any(|part| part.len() > MOST_OF_PART) {
            return Err(InvalidHost::TooLong);
        }
        let is_part = |part: &str| !(part.is_empty() || part.starts_with('-') || part.ends_with('-'));
        if !text.split('.').all(is_part) {
            return Err(InvalidHost::Part);
        }
        let name = text.to_ascii_lowercase();
        if could_be_number(name.rsplit('.').next().unwrap_or_default()) {
            return Err(InvalidHost::AlmostAddress);
        }
        Ok(Self(name))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the labels, from left to right.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if some library takes a name with this last label for an address: `127.1`, `2130706433`, `0x7f000001`.
fn could_be_number(last: &str) -> bool {
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests;
