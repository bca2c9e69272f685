//! The key that signs a log. The secret half stays in the log's folder and has no form in which it could be shown.

use super::error::AuditError;
use super::hash::{from_hex, push_hex};
use crate::random::random;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use std::fmt;
use std::path::Path;

/// The public half of a log's key, in hexadecimal: what others need to check the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// The text is no Ed25519 public key in 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an Ed25519 public key in 64 hexadecimal digits")]
pub struct ParseKeyError;

/// The secret half.
pub(super) struct SecretKey(SigningKey);

/// The bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

// === impl PublicKey ===

impl PublicKey {
    /// Reads its digits.
    ///
    /// # Errors
    /// [`ParseKeyError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseKeyError> {
        let bytes = from_hex::<32>(text.as_bytes()).ok_or(ParseKeyError)?;
        VerifyingKey::from_bytes(&bytes).map(Self).map_err(|_| ParseKeyError)
    }

    /// Returns true if the signature, in hexadecimal digits, is this key's for the message.
    pub(super) fn has_signed(&self, message: &[u8], digits: &[u8]) -> bool {
        from_hex::<SIGNATURE>(digits).is_some_and(|signature| self.signed(message, &signature))
    }

    /// Returns true if the signature, in bytes, is this key's for the message.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8; SIGNATURE]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl SecretKey ===

impl SecretKey {
    pub(super) fn new(folder: &Path) -> Result<Self, AuditError> {
        let seed = random().map_err(|errno| AuditError::io("make a key for", folder, errno.into()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Reads the content of the key's file.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let digits = content.strip_suffix(b"\n")?;
        from_hex::<32>(digits).map(|seed| Self(SigningKey::from_bytes(&seed)))
    }

    /// The content of the key's file, and for nothing else.
    pub(super) fn file_content(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(65);
        push_hex(self.0.as_bytes(), &mut content);
        content.push(b'\n');
        content
    }

    pub(super) fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Adds the digits of the message's signature to a text.
    pub(super) fn sign(&self, message: &[u8], text: &mut Vec<u8>) {
        push_hex(&self.signature(message), text);
    }

    /// The bytes of the message's signature.
    pub(super) fn signature(&self, message: &[u8]) -> [u8; SIGNATURE] {
        self.0.sign(message).to_bytes()
    }
}
