//! Web access of tools for their callers, and the runs that have it.

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

/// Source of callers' web access.
pub trait WebHatch: Send + Sync {
    /// Returns a caller's current web access. The caller is known by the call's origin, not by its content.
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<RunWebAccess, Failure>>;
}

/// Web access of a run.
#[derive(Clone)]
pub struct RunWebAccess {
    /// Id of the run in records.
    pub run_id: RunId,
    /// Fetches pages.
    pub fetcher: Fetcher,
    /// The policy, with its connections.
    pub policy: Arc<LivePolicy>,
    /// Recorder of requests.
    pub ledger: Arc<dyn WebLedger>,
    /// Resources that stay alive as long as this.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
}

/// Web access of all runs that have it.
#[derive(Clone, Default)]
pub struct WebAccessRegistry {
    all: Arc<Mutex<HashMap<RunId, RunWebAccess>>>,
}

/// Registration of a run's web access; dropping it ends the access.
#[derive(Debug)]
pub struct WebAccessRegistration {
    reaches: WebAccessRegistry,
    run_id: RunId,
}

// === impl WebAccessRegistry ===

impl WebAccessRegistry {
    /// Registers the web access of a run until the returned value is dropped.
    pub fn open(&self, reach: RunWebAccess) -> WebAccessRegistration {
        let run_id = reach.run_id.clone();
        self.locked().insert(run_id.clone(), reach);
        WebAccessRegistration { reaches: self.clone(), run_id }
    }

    /// Returns the web access of a caller's run.
    ///
    /// # Errors
    /// `not_supported` if it has none.
    pub fn of(&self, caller: &Caller) -> Result<RunWebAccess, Failure> {
        let found = caller.run_id.as_ref().and_then(|run_id| self.locked().get(run_id).cloned());
        let none = || {
            Failure::new(
                DomainCode::NotSupported,
                "no web access: it is only available to jobs with network access",
            )
        };
        found.ok_or_else(none)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RunId, RunWebAccess>> {
        // Ignores poisoning: each change is complete.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebHatch for WebAccessRegistry {
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<RunWebAccess, Failure>> {
        std::future::ready(self.of(caller)).boxed()
    }
}

impl fmt::Debug for WebAccessRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.locked().keys()).finish()
    }
}

// === impl WebAccessRegistration ===

impl Drop for WebAccessRegistration {
    fn drop(&mut self) {
        self.reaches.locked().remove(&self.run_id);
    }
}
