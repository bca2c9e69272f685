//! Scans the answer to a request with injected credentials: none of them may come back to the client.

use crate::credential::InjectedSecret;
use crate::leak_scan::{LeakScanner, MOST_HELD};
use zeroize::Zeroizing;

/// Scanner that holds back bytes that could be the beginning of a secret.
pub(super) struct ResponseScanner<'f> {
    watches: Vec<LeakScanner<'f>>,
    /// Held bytes, which may be most of a secret.
    held: Zeroizing<Vec<u8>>,
}

/// A secret has come back, or too many bytes would have to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeakedSecret;

// === impl ResponseScanner ===

impl<'f> ResponseScanner<'f> {
    pub(super) fn of<'i: 'f>(injected: impl Iterator<Item = &'i InjectedSecret>) -> Self {
        let watches = injected.map(|injected| injected.forms.watch()).collect();
        Self { watches, held: Zeroizing::default() }
    }

    /// Takes the next bytes and returns those that may be forwarded.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<Vec<u8>, LeakedSecret> {
        let mut hold = 0;
        for watch in &mut self.watches {
            hold = watch.see(bytes).ok_or(LeakedSecret)?.max(hold);
        }
        // None of the bytes held earlier can be released yet.
        if hold > bytes.len() && self.held.len() > MOST_HELD {
            return Err(LeakedSecret);
        }
        self.held.extend_from_slice(bytes);
        let free = self.held.len().saturating_sub(hold);
        Ok(self.held.drain(..free).collect())
    }

    /// Returns the held bytes once nothing follows: they only looked like the beginning of a secret. Fails if they contain one
    /// whose end the host has cut off.
    pub(super) fn end(mut self) -> Result<Vec<u8>, LeakedSecret> {
        if self.watches.iter().any(LeakScanner::ends_within) {
            return Err(LeakedSecret);
        }
        Ok(std::mem::take(&mut *self.held))
    }
}
