//! Agent memory: notes of an agent for the rest of its job. Each is a text with a key and an optional summary.
//!
//! It belongs to one job and is deleted with it ([`crate::jobs::Jobs::expire`]). Limits are checked in the writing
//! transaction while no other one writes notes of the same job, so two concurrent writes can't exceed a limit together.

mod entry;
mod search;

pub use entry::{
    MemoryEntry, MemoryKey, MemoryLimitKind, MemoryLimits, MemoryNote, ParseMemoryKeyError, Summary,
};
pub use search::{MOST_WORDS, NotePart, ParseQueryError, SearchHit, SearchQuery};

use crate::database::{Database, DatabaseError, Sql, Transaction, to_the_end, values};
use crate::page::{Page, PageSize};
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::worker::state::JobState;
use jiff::Timestamp;

/// The memory of the jobs of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory {
    database: Database,
    limits: MemoryLimits,
}

/// Job that the memory belongs to, with the task that the caller expects it to be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryScope {
    /// The task.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
}

/// Result of adding a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteWrite {
    /// There was no note with that key.
    New,
    /// The note has replaced the previous one with that key.
    Replaced,
}

/// A note can't be written or read.
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
    /// The job is over, so it accepts no notes.
    #[error("the job {job_id} is over")]
    Over {
        /// The job.
        job_id: JobId,
    },
    /// There is no note with that key.
    #[error("there is nothing under {key}")]
    Missing {
        /// The key.
        key: MemoryKey,
    },
    /// A limit would be exceeded.
    #[error("{limit} would be {would_be}, and may be {most}")]
    TooMuch {
        /// The limit.
        limit: MemoryLimitKind,
        /// Amount that would be reached.
        would_be: u64,
        /// Maximum amount.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

const JOB: &str = "SELECT number, task_id, state FROM jobs WHERE job_key = $1";

/// Locks a job for writing notes. Concurrent writers wait; inserts that only reference the job don't.
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
    /// Creates the memory store on a database, with limits for each job.
    pub fn new(database: Database, limits: MemoryLimits) -> Self {
        Self { database, limits }
    }

    /// Writes a note; replaces the one with the same key.
    ///
    /// # Errors
    /// [`MemoryError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn add(
        &self,
        of: &MemoryScope,
        note: MemoryNote,
        now: Timestamp,
    ) -> Result<NoteWrite, MemoryError> {
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
            Ok(if was_there { NoteWrite::Replaced } else { NoteWrite::New })
        })
        .await
    }

    /// Lists the notes after that key, without their contents.
    ///
    /// # Errors
    /// [`MemoryError`] when there is no such job, or it can't be read.
    pub async fn list(
        &self,
        of: &MemoryScope,
        after: Option<&MemoryKey>,
        most: u32,
    ) -> Result<Page<MemoryEntry, MemoryKey>, MemoryError> {
        let (job, size) = (self.find(of).await?, PageSize::of(most));
        let after = after.map_or("", MemoryKey::as_str);
        let rows = self.database.fetch(LIST, values![job, after, size.to_fetch]).await?;
        let entries = rows.iter().map(MemoryEntry::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(entries, size, |entry: &MemoryEntry| entry.key.clone()))
    }

    /// Returns the note with that key, and its content.
    ///
    /// # Errors
    /// [`MemoryError`] when it isn't there, or can't be read.
    pub async fn retrieve(
        &self,
        of: &MemoryScope,
        key: &MemoryKey,
    ) -> Result<(MemoryEntry, String), MemoryError> {
        let job = self.find(of).await?;
        let rows = self.database.fetch(RETRIEVE, values![job, key.as_str()]).await?;
        let row = rows.first().ok_or_else(|| MemoryError::Missing { key: key.clone() })?;
        Ok((MemoryEntry::read(row)?, row.text("content")?))
    }

    /// Returns the notes that contain any of these words, best match first.
    ///
    /// # Errors
    /// [`MemoryError`] when there is no such job, or it can't be read.
    pub async fn search(&self, of: &MemoryScope, query: &SearchQuery) -> Result<Vec<SearchHit>, MemoryError> {
        let job = self.find(of).await?;
        let rows = self.database.fetch(ALL, values![job, self.limits.entries]).await?;
        let note = |row| Ok::<_, MemoryError>((MemoryEntry::read(row)?, row.text("content")?));
        let notes = rows.iter().map(note).collect::<Result<_, _>>()?;
        Ok(query.ranked(notes))
    }

    /// Deletes the note with that key.
    ///
    /// # Errors
    /// [`MemoryError`] when it isn't there, or can't be deleted.
    pub async fn delete(&self, of: &MemoryScope, key: &MemoryKey) -> Result<(), MemoryError> {
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

    /// Returns the number of the job.
    async fn find(&self, of: &MemoryScope) -> Result<u64, MemoryError> {
        let rows = self.database.fetch(JOB, values![of.job_id.key()]).await?;
        let row = rows.first().ok_or_else(|| of.unknown())?;
        of.check(row)
    }
}

/// Locks the job, which must not be over, and returns its number. No other transaction writes notes for it until this
/// one is over.
async fn lock(transaction: &mut Transaction, of: &MemoryScope) -> Result<u64, MemoryError> {
    let rows = transaction.fetch(LOCKED_JOB, values![of.job_id.key()]).await?;
    let row = rows.first().ok_or_else(|| of.unknown())?;
    let number = of.check(row)?;
    match JobState::from_name(&row.text("state")?).is_some_and(|state| !state.is_final()) {
        true => Ok(number),
        false => Err(MemoryError::Over { job_id: of.job_id.clone() }),
    }
}

// === impl MemoryScope ===

impl MemoryScope {
    fn check(&self, row: &crate::database::Row) -> Result<u64, MemoryError> {
        // A job of another task is reported as unknown.
        match row.text("task_id")?.eq_ignore_ascii_case(self.task_id.as_str()) {
            true => Ok(row.count("number")?),
            false => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> MemoryError {
        MemoryError::UnknownJob { task_id: self.task_id.clone(), job_id: self.job_id.clone() }
    }
}
