//! Jobs: durable from the moment at which somebody is told that they are accepted, and over exactly once.
//!
//! What may happen to a job is decided by [`belljar_policy::lifecycle`]; here it is made to last. Each change of a job, with
//! the event that tells of it, is one transaction, in which the job's row is locked. What takes time is not done in here:
//! a job is claimed, carried out by whoever has claimed it, and its end is recorded with the claim's fence.

mod callbacks;
mod claim;
mod draft;
mod ending;
mod error;
mod events;
mod instances;
mod listing;
mod record;
mod retention;
mod room;
mod submission;

pub use callbacks::{Callback, Heard};
pub use claim::{Claimed, Fits};
pub use ending::{Ended, Left, Report};
pub use error::{ChangeError, ClaimError, SubmitError};
pub use events::{Started, Told};
pub use instances::{Instance, Owner};
pub use listing::{Filter, Page};
pub use record::{JobRecord, Outcome};
pub use retention::Retention;
pub use submission::{Submission, Submitted};

use crate::database::{self, Database, DatabaseError, Value};
use room::Room;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The jobs of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Jobs {
    database: Database,
    room: Arc<Room>,
    /// The last claim passed over jobs that don't fit: the next one looks for one that fits from the beginning.
    passes_over: Arc<AtomicBool>,
}

// === impl Jobs ===

impl Jobs {
    /// Those of that database.
    pub fn new(database: Database) -> Self {
        Self { database, room: Arc::default(), passes_over: Arc::default() }
    }

    /// Returns true if something in the database was found to be damaged since it was opened.
    pub fn is_damaged(&self) -> bool {
        self.database.is_damaged()
    }

    /// Carries something out to its end, also when nobody waits for it any more: a client that hangs up must not leave a
    /// change in the middle.
    async fn to_the_end<T: Send + 'static, E: From<DatabaseError> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        database::to_the_end(work).await
    }

    /// Carries out one statement; how many rows it has changed.
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
