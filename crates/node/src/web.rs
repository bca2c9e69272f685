//! The web for jobs and sessions: one proxy and one policy for all of them, and what each has had.

mod failure;
mod noted;
pub mod policy_file;

pub use failure::judge;
pub(crate) use failure::judged;
pub(crate) use noted::Noted;
pub use noted::Seen;

use crate::book::{Book, BookError};
use crate::inspection::Inspection;
use crate::metrics::Metrics;
use crate::models::Caller;
use crate::serving::{ServeError, ServedWeb};
use belljar_contract::egress::{PassageBegun, PassageRecord, RUN_ENDED};
use belljar_contract::id::RunId;
use belljar_egress::inference::ledger::Written;
use belljar_egress::proxy::Proxy;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::live::LivePolicy;
use belljar_store::audit::AuditLog;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The web of a node. Each passage is in the audit of the node's state.
pub(crate) struct NodeWeb {
    policy: Arc<LivePolicy>,
    proxy: Arc<Proxy>,
    audit: Arc<AuditLog>,
    metrics: Metrics,
}

/// The web that one run may reach, by sockets that are its own.
pub(crate) struct RunWeb {
    caller: Caller,
    run_id: RunId,
    served: ServedWeb,
    book: Arc<Book>,
}

/// Writes into a book, and counts.
struct Counting {
    book: Arc<Book>,
    metrics: Metrics,
}

// === impl NodeWeb ===

impl NodeWeb {
    pub(crate) fn new(
        policy: Arc<LivePolicy>,
        proxy: &Arc<Proxy>,
        audit: &Arc<AuditLog>,
        metrics: &Metrics,
    ) -> Self {
        Self { policy, proxy: Arc::clone(proxy), audit: Arc::clone(audit), metrics: metrics.clone() }
    }

    /// What it takes to look into the connections of one run more.
    ///
    /// # Errors
    /// [`ServeError`].
    pub(crate) fn inspection(&self) -> Result<Option<Inspection>, ServeError> {
        Inspection::of_live(&self.policy).map_err(|error| io::Error::other(error).into())
    }

    /// Serves it by a sandbox's sockets.
    pub(crate) fn serve(
        &self,
        caller: Caller,
        (run_id, inspection): (&RunId, Option<&Inspection>),
        sockets: Vec<OwnedFd>,
    ) -> Result<RunWeb, ServeError> {
        // Of its calls of models another book knows.
        let book = Arc::new(Book::of(&self.audit, 0));
        let ledger = Arc::new(Counting { book: Arc::clone(&book), metrics: self.metrics.clone() });
        let served = {
            let policy = (&self.policy, inspection);
            ServedWeb::begin_by(&self.proxy, policy, (run_id, ledger), sockets)?
        };
        Ok(RunWeb { caller, run_id: run_id.clone(), served, book })
    }
}

// === impl RunWeb ===

impl RunWeb {
    /// Ends what is under way, and tells what there has been, once all of it is recorded, or that it could not be.
    pub(crate) fn end(self) -> Result<Seen, BookError> {
        let Self { caller, run_id, served, book } = self;
        let seen = served.end();
        book.close(RUN_ENDED, Some(&run_id), &caller.ended(&seen.usage))?;
        Ok(seen)
    }
}

// === impl Counting ===

impl WebLedger for Counting {
    fn begin(&self, record: PassageBegun) -> Written {
        WebLedger::begin(&*self.book, record)
    }

    fn record(&self, record: PassageRecord) {
        self.metrics.web_asked(noted::is_let_through(&record));
        WebLedger::record(&*self.book, record);
    }

    fn is_sound(&self) -> bool {
        WebLedger::is_sound(&*self.book)
    }
}
