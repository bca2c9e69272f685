//! Jobs: durable from the moment at which a client gets their acceptance, and ended exactly once.
//!
//! [`belljar_policy::lifecycle`] decides which transitions are allowed; this module makes them durable. Each change of
//! a job and its event are one transaction that locks the job's row. Nothing slow happens within: an instance claims a
//! job, carries it out, and records its end with the claim's fencing token.

mod callbacks;
mod claim;
mod draft;
mod ending;
mod error;
mod events;
mod instances;
mod listing;
mod projects;
mod record;
mod retention;
mod submission;
mod waiting_room;

pub use callbacks::{Callback, CallbackAnswer};
pub use claim::{ClaimedJob, JobFilter};
pub use ending::{FinalReport, JobEnd, ReleaseReason};
pub use error::{ChangeError, ClaimError, SubmitError};
pub use events::{JobNews, RunStart};
pub use instances::{Instance, Owner};
pub use listing::{JobListFilter, JobListPage};
pub use record::{JobRecord, Outcome};
pub use retention::RetentionCutoffs;
pub use submission::{AcceptedJob, Submission};

use crate::database::{self, Database, DatabaseError, Value};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use waiting_room::WaitingQuota;

/// The jobs of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Jobs {
    database: Database,
    room: Arc<WaitingQuota>,
    /// True if the last claim skipped jobs that don't fit: the next one searches for a fitting job from the beginning.
    passes_over: Arc<AtomicBool>,
}

// === impl Jobs ===

impl Jobs {
    /// Creates the job store on a database.
    pub fn new(database: Database) -> Self {
        Self { database, room: Arc::default(), passes_over: Arc::default() }
    }

    /// Returns true if something in the database was found to be damaged since it was opened.
    pub fn is_damaged(&self) -> bool {
        self.database.is_damaged()
    }

    /// Runs an operation to its end even if its caller stops waiting: a client that disconnects must not leave a change
    /// half done.
    async fn to_the_end<T: Send + 'static, E: From<DatabaseError> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        database::to_the_end(work).await
    }

    /// Executes a statement; returns the number of changed rows.
    async fn write(
        &self,
        name: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let database = self.database.clone();
        self.to_the_end(async move { database.write(name, sql, values).await }).await
    }
}
