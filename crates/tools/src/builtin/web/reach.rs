//! By what tools reach the web for whoever calls them, and the runs whose web is served.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::id::RunId;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::Fetcher;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::live::LivePolicy;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The web, as it is served to callers.
pub trait WebHatch: Send + Sync {
    /// That of a caller, as of now: known by where the call came from, and not by what it says.
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Reach, Failure>>;
}

/// By what the web is reached for one run.
#[derive(Clone)]
pub struct Reach {
    /// Which, in the record.
    pub run_id: RunId,
    /// Fetches pages.
    pub fetcher: Fetcher,
    /// What may be reached, and the connections that there are.
    pub policy: Arc<LivePolicy>,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
    /// What is there for as long as this is.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
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
    /// Has tools reach out for a run by this, until what is returned is dropped.
    pub fn open(&self, reach: Reach) -> Opened {
        let run_id = reach.run_id.clone();
        self.locked().insert(run_id.clone(), reach);
        Opened { reaches: self.clone(), run_id }
    }

    /// That of a caller's run.
    ///
    /// # Errors
    /// `not_supported`, where it has none.
    pub fn of(&self, caller: &Caller) -> Result<Reach, Failure> {
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

impl WebHatch for Reaches {
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Reach, Failure>> {
        std::future::ready(self.of(caller)).boxed()
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
