//! The secret of a token: `bjt_` and 32 random bytes in hexadecimal. It has no form in which it could be printed by
//! accident.

use crate::digest::{hex, sha256};
use crate::random::random;
use rustix::io::Errno;

/// Secret of a token. Any caller that presents it is authenticated.
pub struct TokenSecret(String);

/// Stored digest of a token. It doesn't authenticate a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenDigest(String);

const PREFIX: &str = "bjt_";
const BYTES: usize = 32;

/// Number of digits of a digest that identify a token in records.
const ID_DIGITS: usize = 16;

// === impl TokenSecret ===

impl TokenSecret {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self(format!("{PREFIX}{}", hex(&random::<BYTES>()?))))
    }

    /// Parses a presented token; `None` if it is not formed like one.
    pub(super) fn parse(shown: &str) -> Option<Self> {
        let digits = shown.strip_prefix(PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = digits.len() == 2 * BYTES && digits.bytes().all(is_digit);
        is_token.then(|| Self(shown.to_owned()))
    }

    /// Returns the stored digest as text.
    pub(super) fn sha256(&self) -> String {
        sha256(self.0.as_bytes())
    }

    /// Returns the stored digest.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(self.sha256())
    }

    /// Returns the secret. It must be passed only to the holder that it was issued for.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

// === impl TokenDigest ===

impl TokenDigest {
    /// Returns the digest of a presented token; `None` if it is not formed like one.
    pub fn of(shown: &str) -> Option<Self> {
        TokenSecret::parse(shown).map(|secret| Self(secret.sha256()))
    }

    /// Returns the token's id in records.
    pub fn id(&self) -> &str {
        &self.0[..ID_DIGITS]
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_secrets_are_unique_and_have_a_fixed_format() {
        let (one, other) = (TokenSecret::new().unwrap(), TokenSecret::new().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(TokenSecret::parse(one.reveal()).unwrap().sha256(), one.sha256());
        let upper = one.reveal().to_uppercase();
        let longer = format!("{}0", one.reveal());
        for text in ["", "bjt_", &upper, &longer, &one.reveal()[4..], &one.reveal()[..67], " bjt_"] {
            assert!(TokenSecret::parse(text).is_none(), "{text:?}");
        }
    }
}
