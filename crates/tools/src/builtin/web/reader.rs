//! Reads pages on threads of their own, a few at a time: it takes a processor, and others need theirs.

use crate::answer::Failure;
use crate::page::UnreadableError;
use belljar_contract::tool::DomainCode;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Where pages are read. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    places: Arc<Semaphore>,
}

const READ_AT_ONCE: usize = 2;

// === impl Reader ===

impl Reader {
    pub(super) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(READ_AT_ONCE)) }
    }

    /// What comes of reading one.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, UnreadableError> + Send + 'static,
    ) -> Result<T, Failure> {
        // It is never closed. Whoever gives up waiting leaves the place to those who read.
        let place = Arc::clone(&self.places).acquire_owned().await;
        let reading = tokio::task::spawn_blocking(move || {
            let _place = place;
            read()
        });
        let read = reading.await.map_err(|error| Failure::internal("read the page", &error))?;
        read.map_err(|error: UnreadableError| {
            let code = match error {
                UnreadableError::NotText { .. } => DomainCode::NotSupported,
                UnreadableError::TooMuch => DomainCode::LimitExceeded,
            };
            Failure::new(code, error.to_string())
        })
    }
}
