//! Looks at what comes back of a request in which something was filled in: none of that may reach whoever has sent it.

use crate::credential::Injected;
use crate::echo::{MOST_HELD, Watch};
use zeroize::Zeroizing;

/// Holds back what could be the beginning of it.
pub(super) struct Guard<'f> {
    watches: Vec<Watch<'f>>,
    /// It may be most of a secret.
    held: Zeroizing<Vec<u8>>,
}

/// It has come back, or too much would have to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeated;

// === impl Guard ===

impl<'f> Guard<'f> {
    pub(super) fn of<'i: 'f>(injected: impl Iterator<Item = &'i Injected>) -> Self {
        let watches = injected.map(|injected| injected.forms.watch()).collect();
        Self { watches, held: Zeroizing::default() }
    }

    /// Takes bytes that follow those before, and gives what may go on.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Repeated> {
        let mut hold = 0;
        for watch in &mut self.watches {
            hold = watch.see(bytes).ok_or(Repeated)?.max(hold);
        }
        // What was held before these bytes doesn't end with them.
        if hold > bytes.len() && self.held.len() > MOST_HELD {
            return Err(Repeated);
        }
        self.held.extend_from_slice(bytes);
        let free = self.held.len().saturating_sub(hold);
        Ok(self.held.drain(..free).collect())
    }

    /// What was held, once nothing follows: it was only like the beginning. Or it was more than that, and whoever has answered
    /// has cut it.
    pub(super) fn end(mut self) -> Result<Vec<u8>, Repeated> {
        if self.watches.iter().any(Watch::ends_within) {
            return Err(Repeated);
        }
        Ok(std::mem::take(&mut *self.held))
    }
}
