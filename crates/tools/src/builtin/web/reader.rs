//! Reads pages on threads of their own, a few at a time: it takes a processor, and each run has its turn ([`Turns`]).

use crate::answer::Failure;
use crate::caller::Caller;
use crate::page::UnreadableError;
use crate::turns::Turns;
use belljar_contract::tool::DomainCode;

/// Where pages are read. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    turns: Turns,
}

/// Pages read at once, for all runs together.
const READ_AT_ONCE: usize = 2;

/// Pages of one run that wait or are read. Each is held in memory meanwhile.
const MOST_OF_RUN: usize = 32;

// === impl Reader ===

impl Reader {
    pub(super) fn new() -> Self {
        Self { turns: Turns::new(READ_AT_ONCE, MOST_OF_RUN) }
    }

    /// Reads a page for that caller.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        caller: &Caller,
        read: impl FnOnce() -> Result<T, UnreadableError> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.turns.enter(&caller.queue()).await;
        let turn = turn.map_err(|error| Failure::new(DomainCode::LimitExceeded, error.to_string()))?;
        let read = turn.work(read).await.map_err(|error| Failure::internal("read the page", &error))?;
        read.map_err(|error: UnreadableError| {
            let code = match error {
                UnreadableError::NotText { .. } => DomainCode::NotSupported,
                UnreadableError::TooMuch => DomainCode::LimitExceeded,
            };
            Failure::new(code, error.to_string())
        })
    }
}
