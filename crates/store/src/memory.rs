//! What an agent notes down for the rest of its job: texts by keys, each with a summary if it likes.
//!
//! It is the job's alone, and goes with the job ([`crate::jobs::Jobs::expire`]). How much it may be is decided where it is
//! written, while nobody else writes to the same job's: two that come at once can't go past a limit together.

mod entry;
mod search;

pub use entry::{Limit, Limits, MemoryEntry, MemoryKey, Note, ParseMemoryKeyError, Summary};
pub use search::{Found, MOST_WORDS, ParseQueryError, Place, Query};

use crate::database::{Database, DatabaseError, Sql, Transaction, to_the_end, values};
use crate::page::{Page, Size};
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;

/// The memory of the jobs of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory {
    database: Database,
    limits: Limits,
}

/// Which job's memory: the job, and the task that it is known to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Of {
    /// The task.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// There was none of that key.
    New,
    /// It is there instead of the one that was.
    Replaced,
}

/// Something can't be noted, or found.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There is no such job, or it is of another task.
    #[error("there is no job {job_id} of the task {task_id}")]
    UnknownJob {
        /// The task.
        task_id: TaskId,
        /// The job.
        job_id: JobId,
    },
    /// Nothing is noted for it any more.
    #[error("the job {job_id} is over")]
    Over {
        /// The job.
        job_id: JobId,
    },
    /// There is nothing of that key.
    #[error("there is nothing under {key}")]
    Missing {
        /// The key.
        key: MemoryKey,
    },
    /// It is too much.
    #[error("{limit} would be {would_be}, and may be {most}")]
    TooMuch {
        /// Of what.
        limit: Limit,
        /// How much it would be.
        would_be: u64,
        /// How much it may be.
        most: u64,
    },
    /// The database does not do what it should.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

const JOB: &str = "SELECT number, task_id, state FROM jobs WHERE job_key = $1";

/// Whoever notes something down for it waits for whoever does already; whoever refers to it doesn't.
const LOCKED_JOB: Sql =
    Sql::of_each(JOB, "SELECT number, task_id, state FROM jobs WHERE job_key = $1 FOR NO KEY UPDATE");

const OTHERS: &str = "SELECT count(*) AS entries, CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS bytes \
    FROM memory WHERE job = $1 AND key <> $2";

const ADD: &str = "INSERT INTO memory (job, key, content, summary, size_bytes, created_at_ms, updated_at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (job, key) DO UPDATE SET content = excluded.content, \
    summary = excluded.summary, size_bytes = excluded.size_bytes, updated_at_ms = excluded.updated_at_ms";

const IS_THERE: &str = "SELECT key FROM memory WHERE job = $1 AND key = $2";

const LIST: &str = "SELECT key, summary, size_bytes, created_at_ms, updated_at_ms FROM memory \
    WHERE job = $1 AND key > $2 ORDER BY key LIMIT $3";

const RETRIEVE: &str = "SELECT key, summary, size_bytes, created_at_ms, updated_at_ms, content FROM memory \
    WHERE job = $1 AND key = $2";

const ALL: &str = "SELECT key, summary, size_bytes, created_at_ms, updated_at_ms, content FROM memory \
    WHERE job = $1 ORDER BY key LIMIT $2";

const DELETE: &str = "DELETE FROM memory WHERE job = $1 AND key = $2";

// === impl Memory ===

impl Memory {
    /// That of the jobs of a database, and how much a job may note.
    pub fn new(database: Database, limits: Limits) -> Self {
        Self { database, limits }
    }

    /// Notes something down, in the place of what was there under the same key.
    ///
    /// # Errors
    /// [`MemoryError`]; nothing has changed then, unless the database says that it is in doubt.
    pub async fn add(&self, of: &Of, note: Note, now: Timestamp) -> Result<Added, MemoryError> {
        self.limits.check(&note)?;
        let (memory, of) = (self.clone(), of.clone());
        to_the_end(async move {
            let mut transaction = memory.database.begin().await?;
            let job = lock(&mut transaction, &of).await?;
            let key = note.key.as_str();
            let others = transaction.fetch(OTHERS, values![job, key]).await?;
            let (entries, bytes) = match others.first() {
                Some(others) => (others.count("entries")?, others.count("bytes")?),
                None => (0, 0),
            };
            memory.limits.check_all(entries + 1, bytes.saturating_add(note.size_bytes()))?;
            let was_there = !transaction.fetch(IS_THERE, values![job, key]).await?.is_empty();
            let size_bytes = note.size_bytes();
            let summary = note.summary.map(String::from);
            transaction.execute(ADD, values![job, key, note.content, summary, size_bytes, now]).await?;
            transaction.commit("memory_add").await?;
            Ok(if was_there { Added::Replaced } else { Added::New })
        })
        .await
    }

    /// What is noted behind that key, without the contents.
    ///
    /// # Errors
    /// [`MemoryError`] when there is no such job, or it can't be read.
    pub async fn list(
        &self,
        of: &Of,
        after: Option<&MemoryKey>,
        most: u32,
    ) -> Result<Page<MemoryEntry, MemoryKey>, MemoryError> {
        let (job, size) = (self.find(of).await?, Size::of(most));
        let after = after.map_or("", MemoryKey::as_str);
        let rows = self.database.fetch(LIST, values![job, after, size.to_fetch]).await?;
        let entries = rows.iter().map(MemoryEntry::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(entries, size, |entry: &MemoryEntry| entry.key.clone()))
    }

    /// What is noted under a key, and the content.
    ///
    /// # Errors
    /// [`MemoryError`] when it isn't there, or can't be read.
    pub async fn retrieve(&self, of: &Of, key: &MemoryKey) -> Result<(MemoryEntry, String), MemoryError> {
        let job = self.find(of).await?;
        let rows = self.database.fetch(RETRIEVE, values![job, key.as_str()]).await?;
        let row = rows.first().ok_or_else(|| MemoryError::Missing { key: key.clone() })?;
        Ok((MemoryEntry::read(row)?, row.text("content")?))
    }

    /// What is noted with any of these words in it, what fits best first.
    ///
    /// # Errors
    /// [`MemoryError`] when there is no such job, or it can't be read.
    pub async fn search(&self, of: &Of, query: &Query) -> Result<Vec<Found>, MemoryError> {
        let job = self.find(of).await?;
        let rows = self.database.fetch(ALL, values![job, self.limits.entries]).await?;
        let note = |row| Ok::<_, MemoryError>((MemoryEntry::read(row)?, row.text("content")?));
        let notes = rows.iter().map(note).collect::<Result<_, _>>()?;
        Ok(query.ranked(notes))
    }

    /// Forgets what is noted under a key.
    ///
    /// # Errors
    /// [`MemoryError`] when it isn't there, or can't be forgotten.
    pub async fn delete(&self, of: &Of, key: &MemoryKey) -> Result<(), MemoryError> {
        let (memory, job, key) = (self.clone(), self.find(of).await?, key.clone());
        to_the_end(async move {
            let values = values![job, key.as_str()];
            match memory.database.write("memory_delete", DELETE, values).await? {
                0 => Err(MemoryError::Missing { key }),
                _ => Ok(()),
            }
        })
        .await
    }

    /// The number of the job.
    async fn find(&self, of: &Of) -> Result<u64, MemoryError> {
        let rows = self.database.fetch(JOB, values![of.job_id.key()]).await?;
        let row = rows.first().ok_or_else(|| of.unknown())?;
        of.check(row)
    }
}

/// The number of the job, which nobody else notes anything down for until the transaction is over, and which isn't.
async fn lock(transaction: &mut Transaction, of: &Of) -> Result<u64, MemoryError> {
    let rows = transaction.fetch(LOCKED_JOB, values![of.job_id.key()]).await?;
    let row = rows.first().ok_or_else(|| of.unknown())?;
    let number = of.check(row)?;
    match JobState::from_name(&row.text("state")?).is_some_and(|state| !state.is_final()) {
        true => Ok(number),
        false => Err(MemoryError::Over { job_id: of.job_id.clone() }),
    }
}

// === impl Of ===

impl Of {
    fn check(&self, row: &crate::database::Row) -> Result<u64, MemoryError> {
        // Somebody else's job is as good as none.
        match row.text("task_id")?.eq_ignore_ascii_case(self.task_id.as_str()) {
            true => Ok(row.count("number")?),
            false => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> MemoryError {
        MemoryError::UnknownJob { task_id: self.task_id.clone(), job_id: self.job_id.clone() }
    }
}
