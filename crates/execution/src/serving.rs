//! Models and the web for one sandbox: a proxy serves its sockets, and every request is recorded in the run's journal.

mod thread;

pub use thread::HatchThread;

use crate::tls_interception::TlsInterception;
use crate::web::{SummingLedger, WebTotals};
use belljar_contract::id::RunId;
use belljar_egress::http1::limits::Times;
use belljar_egress::identity::{Identity, RunOwner};
use belljar_egress::inference::budget::Budget;
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::ledger::Ledger;
use belljar_egress::inference::run::Run;
use belljar_egress::proxy::{Listener, ServedRun};
use belljar_egress::web::fetch::{Fetcher, fetcher};
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::limits::WebLimits;
use belljar_egress::web::live::LivePolicy;
use belljar_egress::web::run::WebRun;
use belljar_journal::RunJournal;
use belljar_tools::builtin::web::reach::RunWebAccess;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Models that are being served. Dropping it ends their calls.
pub struct ServedModels {
    run: Arc<Run>,
    book: Arc<RunJournal>,
    serving: Option<ServedRun>,
    thread: Arc<HatchThread>,
}

/// The web that is being served. Dropping it ends its requests.
pub struct ServedWeb {
    run: Arc<WebRun>,
    noted: Arc<SummingLedger>,
    fetcher: Fetcher,
    serving: Option<ServedRun>,
    thread: Arc<HatchThread>,
}

/// Web access of one run, before it is served.
pub struct WebService<'s> {
    /// Policy.
    pub policy: &'s Arc<LivePolicy>,
    /// TLS interception, if the policy needs it.
    pub inspection: Option<&'s TlsInterception>,
    /// The run.
    pub run_id: &'s RunId,
    /// Journal of its requests.
    pub ledger: Arc<dyn WebLedger>,
    /// Task and job that an upstream proxy gets.
    pub owner: RunOwner,
}

/// The proxy can't be started.
#[derive(Debug, thiserror::Error)]
#[error("can't serve the hatches of the sandbox")]
pub struct ServeError {
    #[from]
    source: io::Error,
}

// === impl ServedModels ===

impl ServedModels {
    /// Serves models on a sandbox's sockets, on a thread of its own. The sockets identify the caller as `identity`.
    ///
    /// # Errors
    /// [`ServeError`] when the thread can't be started.
    pub fn begin(
        config: InferenceConfig,
        identity: Identity,
        book: &Arc<RunJournal>,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, ServeError> {
        Self::begin_on(&Arc::new(HatchThread::start()?), (config, identity), book, sockets)
    }

    /// Serves models on the thread of the run.
    ///
    /// # Errors
    /// [`ServeError`] when the sockets can't be served.
    pub fn begin_on(
        thread: &Arc<HatchThread>,
        (config, identity): (InferenceConfig, Identity),
        book: &Arc<RunJournal>,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, ServeError> {
        let ledger = Arc::clone(book) as Arc<dyn Ledger>;
        let budget = Budget::new(config.budget);
        let times = Times::default();
        let keeps_bodies = config.keeps_bodies;
        let run = Arc::new(Run { identity, models: config.models, budget, times, keeps_bodies, ledger });
        let sockets = sockets.into_iter().map(Listener::from_descriptor).collect::<io::Result<Vec<_>>>()?;
        let serving = thread.proxy().serve(Arc::clone(&run), sockets)?;
        Ok(Self { run, book: Arc::clone(book), serving: Some(serving), thread: Arc::clone(thread) })
    }

    /// Ends calls that are under way. When this returns, the journal has every call, or is marked as incomplete.
    pub fn end(mut self) {
        if self.serving.take().is_some_and(|serving| !self.thread.end(&serving)) {
            self.book.lose();
        }
        self.run.flush_audit();
    }
}

// === impl ServedWeb ===

impl ServedWeb {
    /// Serves the web on a sandbox's sockets, as the policy allows, on a thread of its own. The sockets identify the caller.
    ///
    /// # Errors
    /// [`ServeError`] when the thread can't be started.
    pub fn begin(
        (policy, inspection): (&Arc<LivePolicy>, Option<&TlsInterception>),
        run_id: &RunId,
        book: &Arc<RunJournal>,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, ServeError> {
        let ledger = Arc::clone(book) as Arc<dyn WebLedger>;
        let service = WebService { policy, inspection, run_id, ledger, owner: RunOwner::default() };
        Self::begin_on(&Arc::new(HatchThread::start()?), service, sockets)
    }

    /// Serves the web on the thread of the run.
    ///
    /// # Errors
    /// [`ServeError`] when the sockets can't be served.
    pub fn begin_on(
        thread: &Arc<HatchThread>,
        service: WebService<'_>,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, ServeError> {
        let WebService { policy, inspection, run_id, ledger, owner } = service;
        let noted = Arc::new(SummingLedger::of(ledger));
        let ledger = Arc::clone(&noted) as Arc<dyn WebLedger>;
        let limits = WebLimits { audit: policy.current().config.audit, ..WebLimits::default() };
        let run = WebRun::new(run_id.clone(), Arc::clone(policy), limits, ledger).owned_by(owner);
        let run = Arc::new(match inspection {
            Some(inspection) => run.inspecting_as(Arc::clone(&inspection.authority)),
            None => run,
        });
        let (fetcher, fetches) = fetcher();
        let sockets = sockets.into_iter().map(Listener::from_descriptor);
        let listeners = sockets.chain([Ok(Listener::Fetches(fetches))]).collect::<io::Result<Vec<_>>>()?;
        let serving = thread.proxy().serve_web(Arc::clone(&run), listeners)?;
        Ok(Self { run, noted, fetcher, serving: Some(serving), thread: Arc::clone(thread) })
    }

    /// Returns the web access of tools for this run. Their requests are recorded as those from its sockets are.
    pub fn reach(&self) -> RunWebAccess {
        let ledger = Arc::clone(&self.noted) as Arc<dyn WebLedger>;
        let (run_id, policy) = (self.run.run_id.clone(), Arc::clone(&self.run.policy));
        RunWebAccess { run_id, fetcher: self.fetcher.clone(), policy, ledger, held: None }
    }

    /// Ends requests that are under way. When this returns, the journal has all of them, or is marked as incomplete. Returns
    /// the usage.
    pub fn end(mut self) -> WebTotals {
        if self.serving.take().is_some_and(|serving| !self.thread.end(&serving)) {
            self.noted.lose();
        }
        self.run.flush_audit();
        self.noted.seen(self.run.denials())
    }
}
