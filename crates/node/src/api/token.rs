//! Authentication by the node's token.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use belljar_egress::known_secrets;
use belljar_egress::secret::Secret;
use belljar_trusted::input;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use subtle::ConstantTimeEq;

/// The token that the orchestrator presents. Only its hash is kept. It may be replaced while the node runs.
pub struct Token {
    hash: RwLock<[u8; 32]>,
}

/// Reasons why a token can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The token file can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no valid token.
    #[error("{} holds no token: {SHORTEST} to {LONGEST} visible characters of ASCII, alone in the file", path.display())]
    None {
        /// The file.
        path: std::path::PathBuf,
    },
}

/// Minimum and maximum length in bytes. A shorter token could be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 4_096;

/// Maximum size of a token file, in bytes.
const LARGEST_FILE: u64 = 8 << 10;

// === impl Token ===

impl Token {
    /// Reads the token from a file; surrounding white space is ignored.
    ///
    /// # Errors
    /// [`TokenError`] when there is no valid token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = input::read(path, LARGEST_FILE)
            .map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        let is_whole = text.len() as u64 <= LARGEST_FILE;
        let text = text.trim_ascii();
        let is_token =
            is_whole && (SHORTEST..=LONGEST).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
        match is_token {
            true => {
                // Remembered as a secret, so that it is detected if an agent outputs it.
                Secret::parse(text).into_iter().for_each(known_secrets::remember);
                Ok(Self { hash: RwLock::new(Sha256::digest(text).into()) })
            }
            false => Err(TokenError::None { path: path.to_owned() }),
        }
    }

    /// Replaces the token: requests with the old one are denied from now on.
    pub(crate) fn replace(&self, other: &Self) {
        let hash = other.hash();
        *self.hash.write().unwrap_or_else(PoisonError::into_inner) = hash;
    }

    fn hash(&self) -> [u8; 32] {
        *self.hash.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the request has exactly one `Authorization` header, with this token.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(shown), None) = (shown.next(), shown.next()) else { return false };
        let Some((scheme, token)) = shown.to_str().ok().and_then(|shown| shown.split_once(' ')) else {
            return false;
        };
        // Hashes are compared, in constant time.
        let hash: [u8; 32] = Sha256::digest(token.trim()).into();
        scheme.eq_ignore_ascii_case("bearer") && bool::from(hash.ct_eq(&self.hash()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Result<Token, TokenError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        Token::read(&path)
    }

    fn admits(shown: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        shown.iter().for_each(|shown| {
            headers.append(AUTHORIZATION, shown.parse().unwrap());
        });
        token("abcdefghijklmnop\n").unwrap().admits(&headers)
    }

    #[test]
    fn request_needs_exactly_one_correct_bearer_token() {
        assert!(admits(&["Bearer abcdefghijklmnop"]));
        assert!(admits(&["bearer  abcdefghijklmnop"]));
        for shown in [
            "Bearer abcdefghijklmno",
            "Bearer abcdefghijklmnopq",
            "Basic abcdefghijklmnop",
            "abcdefghijklmnop",
            "Bearer",
            "",
        ] {
            assert!(!admits(&[shown]), "{shown}");
        }
        assert!(!admits(&[]));
        assert!(!admits(&["Bearer abcdefghijklmnop", "Bearer abcdefghijklmnop"]));
    }

    #[test]
    fn short_or_malformed_node_token_is_rejected() {
        assert!(token("short").is_err());
        assert!(token("").is_err());
        assert!(token("two words of a token").is_err());
        assert!(token("one-long-enough-token").is_ok());
    }
}
