//! The token that a node is shown.

use crate::error::CliError;
use belljar_trusted::input;
use std::path::Path;
use zeroize::Zeroizing;

/// A token. It can be neither shown nor written down, and is wiped from memory when it goes.
pub(crate) struct ClientToken(Zeroizing<Vec<u8>>);

/// A longer file is no token's.
const LARGEST_BYTES: u64 = 8 << 10;

// === impl ClientToken ===

impl ClientToken {
    /// The token in a file, with white space around it.
    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        crate::trusted_files::check(path)?;
        let text = input::read(path, LARGEST_BYTES).map_err(|error| CliError::read(path, error))?;
        let text = Zeroizing::new(text);
        let is_short = text.len() as u64 <= LARGEST_BYTES;
        let token = text.trim_ascii();
        // Anything else would be a header of its own.
        match is_short && !token.is_empty() && token.iter().all(u8::is_ascii_graphic) {
            true => Ok(Self(Zeroizing::new(token.to_vec()))),
            false => Err(CliError::usage(format!("{} holds no token", crate::output::path(path)))),
        }
    }

    /// Creates a new random token that an attacker can't guess.
    pub(crate) fn new() -> Self {
        let [one, other] = [(); 2].map(|()| uuid::Uuid::new_v4().as_simple().to_string());
        Self(Zeroizing::new([one.as_bytes(), other.as_bytes()].concat()))
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}
