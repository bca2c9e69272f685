//! The web for jobs and sessions: one policy for all of them, one thread for each, and the usage of each.

use crate::metrics::Metrics;
use crate::models::ModelCaller;
use belljar_contract::audit::FoldedRecords;
use belljar_contract::egress::{ProxiedRequestRecord, ProxiedRequestStartRecord, RUN_ENDED};
use belljar_contract::id::RunId;
use belljar_egress::identity::RunOwner;
use belljar_egress::inference::ledger::WriteConfirmation;
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::live::LivePolicy;
use belljar_execution::serving::{HatchThread, ServeError, ServedWeb, WebService};
use belljar_execution::tls_interception::TlsInterception;
use belljar_execution::web::{RequestsInProgress, Verdict, WebTotals};
use belljar_journal::{RunJournal, RunJournalError};
use belljar_policy::access::compiled::SandboxAccess;
use belljar_policy::egress::EgressPolicy;
use belljar_store::audit::AuditLog;
use belljar_tools::builtin::web::reach::{RunWebAccess, WebAccessRegistration, WebAccessRegistry};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The web access of a node. Each request is in the audit log of the node's state directory.
pub(crate) struct NodeWeb {
    policy: Arc<LivePolicy>,
    /// Serves callers outside of sandboxes.
    callers: Arc<HatchThread>,
    audit: Arc<AuditLog>,
    metrics: Metrics,
    /// Maximum number of requests of a run that are listed one by one.
    listed_passages: usize,
    /// Web access of tools, by the runs that it is served to.
    reaches: WebAccessRegistry,
}

/// The policy of one run, and its TLS interception.
#[derive(Clone)]
pub(crate) struct RunPolicy {
    policy: Arc<LivePolicy>,
    inspection: Option<TlsInterception>,
    owner: RunOwner,
}

/// The web access of one run, served on its own sockets.
pub(crate) struct RunWeb {
    caller: ModelCaller,
    run_id: RunId,
    served: ServedWeb,
    book: Arc<RunJournal>,
    counting: Arc<CountingJournal>,
    /// Keeps the web access of the agent's tools open.
    opened: WebAccessRegistration,
}

/// Writes into a journal, and counts.
struct CountingJournal {
    book: Arc<RunJournal>,
    metrics: Metrics,
    begun: RequestsInProgress,
    listed: Mutex<Vec<ProxiedRequestRecord>>,
    most_listed: usize,
}

/// Kind of the audit record that identifies a caller whose id is no run's.
const CALLER_BEGUN: &str = "egress_caller_begun";

// === impl NodeWeb ===

impl NodeWeb {
    pub(crate) fn new(
        policy: Arc<LivePolicy>,
        callers: &Arc<HatchThread>,
        audit: &Arc<AuditLog>,
        metrics: &Metrics,
        listed_passages: usize,
    ) -> Self {
        let (callers, audit, metrics) = (Arc::clone(callers), Arc::clone(audit), metrics.clone());
        Self { policy, callers, audit, metrics, listed_passages, reaches: WebAccessRegistry::default() }
    }

    /// Returns the web access of tools.
    pub(crate) fn reaches(&self) -> &WebAccessRegistry {
        &self.reaches
    }

    /// Returns true if the policy allows any request at all.
    pub(crate) fn lets_anybody_out(&self) -> bool {
        self.policy.current().config.policy != EgressPolicy::default()
    }

    /// Returns the web access of another run: the node's policy, restricted by these terms.
    ///
    /// # Errors
    /// [`ServeError`].
    pub(crate) fn way(&self, terms: Option<&SandboxAccess>) -> Result<RunPolicy, ServeError> {
        let policy = self.policy(terms);
        let inspection = TlsInterception::of_live(&policy).map_err(io::Error::other)?;
        Ok(RunPolicy { policy, inspection, owner: RunOwner::default() })
    }

    /// Serves the web on a sandbox's sockets, on the thread of its run.
    pub(crate) fn serve(
        &self,
        (thread, caller): (&Arc<HatchThread>, ModelCaller),
        (run_id, way): (&RunId, &RunPolicy),
        sockets: Vec<OwnedFd>,
    ) -> Result<RunWeb, ServeError> {
        let counting = self.counting(self.listed_passages);
        let book = Arc::clone(&counting.book);
        let ledger = Arc::clone(&counting) as Arc<dyn WebLedger>;
        let (policy, inspection, owner) = (&way.policy, way.inspection.as_ref(), way.owner.clone());
        let service = WebService { policy, inspection, run_id, ledger, owner };
        let served = ServedWeb::begin_on(thread, service, sockets)?;
        let opened = self.reaches.open(served.reach());
        Ok(RunWeb { caller, run_id: run_id.clone(), served, book, counting, opened })
    }

    /// Serves the web to a caller outside of runs, until the returned value is dropped. The caller's identity is recorded
    /// first.
    ///
    /// # Errors
    /// [`ServeError`].
    pub(crate) fn serve_caller(
        &self,
        whose: &impl Serialize,
        (run_id, terms): (&RunId, Option<&SandboxAccess>),
    ) -> Result<RunWebAccess, ServeError> {
        let counting = self.counting(0);
        counting.book.note(CALLER_BEGUN, Some(run_id), whose);
        let ledger = counting as Arc<dyn WebLedger>;
        // Tools state their requests themselves, so there is no TLS interception.
        let policy = &self.policy(terms);
        let service = WebService { policy, inspection: None, run_id, ledger, owner: RunOwner::default() };
        let served = ServedWeb::begin_on(&self.callers, service, Vec::new())?;
        let reach = served.reach();
        Ok(RunWebAccess { held: Some(Arc::new(served)), ..reach })
    }

    fn counting(&self, most_listed: usize) -> Arc<CountingJournal> {
        // Model calls are in another journal.
        let book = Arc::new(RunJournal::of(&self.audit, 0));
        let metrics = self.metrics.clone();
        Arc::new(CountingJournal {
            book,
            metrics,
            begun: RequestsInProgress::default(),
            listed: Mutex::default(),
            most_listed,
        })
    }

    /// Returns the node's policy, restricted by these terms.
    fn policy(&self, terms: Option<&SandboxAccess>) -> Arc<LivePolicy> {
        match terms.cloned() {
            None => Arc::clone(&self.policy),
            Some(terms) => self.policy.derive(move |house| within(house, &terms)),
        }
    }
}

fn within(house: WebConfig, terms: &SandboxAccess) -> WebConfig {
    let policy = terms.egress_within(&house.policy).unwrap_or_default();
    house.with_policy(policy)
}

// === impl RunPolicy ===

impl RunPolicy {
    /// Sets the task and the job that own the run.
    pub(crate) fn owned_by(self, owner: RunOwner) -> Self {
        Self { owner, ..self }
    }

    /// Has the sandbox trust the interception authority, if there is one.
    pub(crate) fn furnish(&self, env: &mut BTreeMap<String, String>, home: &mut BTreeMap<String, String>) {
        self.inspection.iter().for_each(|inspection| inspection.furnish(env, home));
    }
}

// === impl RunWeb ===

impl RunWeb {
    /// Ends requests that are under way. Returns the usage once all of it is recorded, or an error if it could not be; and
    /// the requests up to the listing limit.
    pub(crate) fn end(self) -> (Result<WebTotals, RunJournalError>, Vec<ProxiedRequestRecord>) {
        let Self { caller, run_id, served, book, counting, opened } = self;
        drop(opened);
        let seen = served.end();
        let closed = book.close(RUN_ENDED, Some(&run_id), &caller.ended(&seen.usage));
        (closed.map(|_| seen), std::mem::take(&mut *counting.locked()))
    }
}

// === impl CountingJournal ===

impl CountingJournal {
    fn tell_metrics(&self, record: &ProxiedRequestRecord) {
        match self.begun.end(record) {
            Verdict::LetThrough => self.metrics.web_asked(true),
            Verdict::Denied => self.metrics.web_asked(false),
            Verdict::Enclosing => {}
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<ProxiedRequestRecord>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebLedger for CountingJournal {
    fn begin(&self, record: ProxiedRequestStartRecord) -> WriteConfirmation {
        self.begun.begin(&record);
        WebLedger::begin(&*self.book, record)
    }

    fn count(&self, record: &ProxiedRequestRecord) {
        self.tell_metrics(record);
    }

    fn record_folded(&self, folded: FoldedRecords) {
        WebLedger::record_folded(&*self.book, folded);
    }

    fn record(&self, record: ProxiedRequestRecord) {
        self.tell_metrics(&record);
        let mut listed = self.locked();
        if listed.len() < self.most_listed {
            listed.push(record.clone());
        }
        drop(listed);
        WebLedger::record(&*self.book, record);
    }

    fn is_sound(&self) -> bool {
        WebLedger::is_sound(&*self.book)
    }

    fn lose(&self) {
        self.book.lose();
    }
}
