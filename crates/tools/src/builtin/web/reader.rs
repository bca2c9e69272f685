//! Parses pages on blocking threads, a few at a time: parsing is processor-intensive, and runs take turns ([`TurnQueue`]).

use crate::answer::Failure;
use crate::caller::Caller;
use crate::page::UnreadableError;
use crate::turn_queue::TurnQueue;
use belljar_contract::tool::DomainCode;

/// Queue of pages to parse. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct PageReader {
    turns: TurnQueue,
}

/// Maximum number of pages that are parsed concurrently, for all runs.
const READ_AT_ONCE: usize = 2;

/// Maximum number of pages of one run that wait or are parsed. Each is held in memory meanwhile.
const MOST_OF_RUN: usize = 32;

// === impl PageReader ===

impl PageReader {
    pub(super) fn new() -> Self {
        Self { turns: TurnQueue::new(READ_AT_ONCE, MOST_OF_RUN) }
    }

    /// Parses a page for that caller.
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
