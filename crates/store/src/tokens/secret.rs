//! The secret of a token: `bjt_` and 32 random bytes in hexadecimal. It has no form in which it would be shown by accident.

use crate::digest::{hex, sha256};
use crate::random::random;
use rustix::io::Errno;

/// The secret of a token. Whoever has it is let in.
pub struct TokenSecret(String);

/// What is kept of a token. It lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenDigest(String);

const PREFIX: &str = "bjt_";
const BYTES: usize = 32;

/// As much of a digest tells tokens apart in records.
const ID_DIGITS: usize = 16;

// === impl TokenSecret ===

impl TokenSecret {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self(format!("{PREFIX}{}", hex(&random::<BYTES>()?))))
    }

    /// Something that somebody shows, if it looks like one.
    pub(super) fn parse(shown: &str) -> Option<Self> {
        let digits = shown.strip_prefix(PREFIX)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = digits.len() == 2 * BYTES && digits.bytes().all(is_digit);
        is_token.then(|| Self(shown.to_owned()))
    }

    /// What is kept of it.
    pub(super) fn sha256(&self) -> String {
        sha256(self.0.as_bytes())
    }

    /// What is kept of it.
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(self.sha256())
    }

    /// The secret, to hand it to whoever it was made for, and for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

// === impl TokenDigest ===

impl TokenDigest {
    /// That of something that somebody shows, if it looks like a token.
    pub fn of(shown: &str) -> Option<Self> {
        TokenSecret::parse(shown).map(|secret| Self(secret.sha256()))
    }

    /// What the token is called in records.
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
    fn a_token_looks_like_one_and_no_two_are_the_same() {
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
