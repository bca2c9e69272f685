//! SHA-256, and hexadecimal digits: lower case, and in no other form.

use sha2::{Digest, Sha256};
use std::fmt;

/// The hash of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 64 hexadecimal digits in lower case")]
pub struct ParseHashError;

/// Number of digits of a hash.
pub(super) const DIGITS: usize = 64;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Adds the digits of some bytes to a text.
pub(super) fn push_hex(bytes: &[u8], text: &mut Vec<u8>) {
    for byte in bytes {
        text.push(HEX[usize::from(byte >> 4)]);
        text.push(HEX[usize::from(byte & 15)]);
    }
}

/// The bytes of these digits, if they are that many and nothing else.
pub(super) fn from_hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

// === impl Hash ===

impl Hash {
    /// Value of `previous` in the first record.
    pub const NONE: Self = Self([0; 32]);

    /// The hash of some bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(super) fn from_array(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads its digits.
    ///
    /// # Errors
    /// [`ParseHashError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseHashError> {
        Self::from_digits(text.as_bytes()).ok_or(ParseHashError)
    }

    pub(super) fn from_digits(digits: &[u8]) -> Option<Self> {
        from_hex(digits).map(Self)
    }

    pub(super) fn push_to(&self, text: &mut Vec<u8>) {
        push_hex(&self.0, text);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_parses_only_its_canonical_hex_form() {
        let hash = Hash::of(b"a");
        let text = hash.to_string();
        assert_eq!(text, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
        assert_eq!(Hash::parse(&text), Ok(hash));
        for other in [&text.to_uppercase(), &text[1..], &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(Hash::parse(other), Err(ParseHashError), "{other}");
        }
    }
}
