//! The runs whose web is served, and by what tools reach it for them.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::id::RunId;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::Fetcher;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::live::LivePolicy;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By what one run is reached for.
#[derive(Clone)]
pub struct Reach {
    /// Fetches pages.
    pub fetcher: Fetcher,
    /// What may be reached, and the connections that there are.
    pub policy: Arc<LivePolicy>,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
}

/// Those of all runs that have any.
#[derive(Clone, Default)]
pub struct Reaches {
    all: Arc<Mutex<HashMap<RunId, Reach>>>,
}

/// A run's, as long as this lives.
#[derive(Debug)]
pub struct Opened {
    reaches: Reaches,
    run_id: RunId,
}

// === impl Reaches ===

impl Reaches {
    /// Has tools reach out for that run by this, until what is returned is dropped.
    pub fn open(&self, run_id: &RunId, reach: Reach) -> Opened {
        self.locked().insert(run_id.clone(), reach);
        Opened { reaches: self.clone(), run_id: run_id.clone() }
    }

    /// That of a caller's run: known by where the call came from, and not by what it says.
    pub(crate) fn of(&self, caller: &Caller) -> Result<Reach, Failure> {
        let found = caller.run_id.as_ref().and_then(|run_id| self.locked().get(run_id).cloned());
        let none = || {
            Failure::new(
                DomainCode::NotSupported,
                "there is no web here: it is served to jobs that may reach it",
            )
        };
        found.ok_or_else(none)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RunId, Reach>> {
        // Nothing in there is ever half done.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Reaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.locked().keys()).finish()
    }
}

// === impl Opened ===

impl Drop for Opened {
    fn drop(&mut self) {
        self.reaches.locked().remove(&self.run_id);
    }
}
