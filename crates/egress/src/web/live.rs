//! The policy that counts at a time. It may be replaced while tunnels are open: those that it does not allow any more end.

use super::config::WebConfig;
use std::sync::Arc;
use tokio::sync::watch;

/// A policy, and the next one.
#[derive(Debug)]
pub struct LivePolicy {
    current: watch::Sender<Arc<Generation>>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Which, counted from 1.
    pub number: u64,
    /// What it says.
    pub config: WebConfig,
}

// === impl LivePolicy ===

impl LivePolicy {
    /// The first one.
    pub fn new(config: impl Into<WebConfig>) -> Self {
        let (current, _) = watch::channel(Arc::new(Generation { number: 1, config: config.into() }));
        Self { current }
    }

    /// That which counts.
    pub fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.current.borrow())
    }

    /// Has another one count from now on. Its number; one that says the same is the same.
    pub fn replace(&self, config: impl Into<WebConfig>) -> u64 {
        let config = config.into();
        self.current.send_if_modified(|current| {
            let is_other = current.config != config;
            if is_other {
                *current = Arc::new(Generation { number: current.number + 1, config });
            }
            is_other
        });
        self.current.borrow().number
    }

    /// Hears of each that comes after the one that counts now.
    pub(crate) fn hear(&self) -> watch::Receiver<Arc<Generation>> {
        self.current.subscribe()
    }
}
