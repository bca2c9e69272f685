//! Hosts, read so that two spellings of one never get two verdicts: there is one form of each, and what some library would
//! read otherwise than another is no host.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

/// A host, in its one form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name of DNS: in lower case, without a dot at its end.
    Name(HostName),
    /// An address; one of version 4 is never written as one of version 6.
    Address(IpAddr),
}

/// A name of DNS, in lower case, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Text that is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// Longer than a name may be.
    #[error("a name has at most 253 characters, and each part of it at most 63")]
    TooLong,
    /// It has something in it that no name has.
    #[error("a name has letters, digits, `-`, `_` and dots, and nothing else")]
    Character,
    /// It has letters that DNS doesn't know.
    #[error("a name with other letters than those of ASCII is written in its encoded form, `xn--…`")]
    Unicode,
    /// A part of it is empty, or begins or ends as none may.
    #[error("each part of a name begins and ends with a letter or a digit")]
    Part,
    /// Some would take it for an address, and others for another one.
    #[error("an address of version 4 has four numbers, each in decimal without zeros before it")]
    AlmostAddress,
    /// What stands between brackets is no address of version 6, or says by which interface.
    #[error("between the brackets stands an address of version 6, without an interface")]
    Brackets,
}

const MOST: usize = 253;
const MOST_OF_PART: usize = 63;

// === impl Host ===

impl Host {
    /// Reads the host of a URL or of `HOST:PORT`.
    ///
    /// # Errors
    /// [`InvalidHost`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(InvalidHost::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| InvalidHost::Brackets)?;
            return Ok(Self::Address(IpAddr::from(address).to_canonical()));
        }
        // With a dot at its end it is the same name, or the same address.
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
    /// Reads a name that has no dot at its end.
    ///
    /// # Errors
    /// [`InvalidHost`] says what is wrong with it.
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

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its parts, the first first.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the last part of a name makes an address of it with some library: `127.1`, `2130706433`, `0x7f000001`.
fn could_be_number(last: &str) -> bool {
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests;
