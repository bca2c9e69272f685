//! The secret of a grant: `bjg_` and 32 random bytes in hexadecimal. It has no form in which it could be printed by
//! accident.

use crate::digest::{hex, sha256};
use crate::random::random;
use rustix::io::Errno;

/// The secret of a grant, which shows it.
pub struct GrantSecret(String);

const PREFIX: &str = "bjg_";
const BYTES: usize = 32;

// === impl GrantSecret ===

impl GrantSecret {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self(format!("{PREFIX}{}", hex(&random::<BYTES>()?))))
    }

    pub(super) fn sha256(&self) -> String {
        sha256(self.0.as_bytes())
    }

    /// Returns the secret. It must be passed only to the holder of the grant.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
