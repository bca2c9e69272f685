//! Secrets that only an upstream may see.

use zeroize::Zeroizing;

/// Secret. It has no `Debug` output or serialization, and is wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Reason why a text is no valid secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text has characters that may not stand in a header.
    #[error("it contains a character that headers can't contain")]
    Character,
    /// The text is so short that it could occur by chance.
    #[error("it is shorter than {SHORTEST} characters")]
    Short,
}

/// Minimum length in bytes. A shorter text would be found in harmless answers.
const SHORTEST: usize = 8;

// === impl Secret ===

impl Secret {
    /// Parses a secret. Surrounding white space is removed.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn parse(text: impl Into<Vec<u8>>) -> Result<Self, SecretError> {
        let text = Zeroizing::new(text.into());
        let text = text.trim_ascii();
        match text.len() {
            0 => Err(SecretError::Empty),
            _ if !text.iter().all(u8::is_ascii_graphic) => Err(SecretError::Character),
            length if length < SHORTEST => Err(SecretError::Short),
            _ => Ok(Self(Zeroizing::new(text.to_vec()))),
        }
    }

    /// Returns the bytes of the secret.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_that_is_not_a_valid_header_value_is_rejected() {
        let parse = |text: &str| Secret::parse(text).map(|secret| secret.expose().to_vec());
        assert_eq!(parse(" sk-12345678\n"), Ok(b"sk-12345678".to_vec()));
        assert_eq!(parse(" \n"), Err(SecretError::Empty));
        assert_eq!(parse("sk-1234\r\nX: y"), Err(SecretError::Character));
        assert_eq!(parse("sk-1234\u{0}567"), Err(SecretError::Character));
        assert_eq!(parse("short"), Err(SecretError::Short));
    }
}
