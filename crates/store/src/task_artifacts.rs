//! The files that tasks keep, by path. Each refers to a content in [`crate::artifacts`] and names the job that stored
//! it.
//!
//! ```text
//! Artifacts::keep_bytes ─► Content ─► TaskArtifacts::put      what is referred to is not removed (Jobs::is_referenced)
//! ```
//!
//! A task's limits are checked in the transaction that writes, while no other transaction writes files of the same
//! task.

use crate::artifacts::Content;
use crate::database::{Database, DatabaseError, Row, to_the_end, unreadable, values};
use crate::page::{Page, PageSize};
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::media::MediaType;
use belljar_contract::path::ArtifactPath;
use jiff::Timestamp;
use std::fmt;

/// The files that the tasks of a database keep. Clones share it.
#[derive(Debug, Clone)]
pub struct TaskArtifacts {
    database: Database,
    limits: TaskArtifactLimits,
}

/// A file that a task keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskArtifact {
    /// Its path.
    pub path: ArtifactPath,
    /// Content of the file.
    pub content: Content,
    /// Declared media type of the content.
    pub content_type: Option<MediaType>,
    /// Job that stored it.
    pub job_id: Option<JobId>,
    /// Run that stored it.
    pub run_id: Option<RunId>,
    /// Time at which the path was first written.
    pub created_at: Timestamp,
    /// Time of the last write.
    pub updated_at: Timestamp,
}

/// A file to be kept.
#[derive(Debug, Clone)]
pub struct NewTaskArtifact {
    /// Its path.
    pub path: ArtifactPath,
    /// Content of the file, which must be stored already.
    pub content: Content,
    /// Declared media type of the content.
    pub content_type: Option<MediaType>,
    /// Job that stores it.
    pub job_id: Option<JobId>,
    /// Run that stores it.
    pub run_id: Option<RunId>,
}

/// Result of storing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// The file.
    pub artifact: TaskArtifact,
    /// Previous content of that path.
    pub replaced: Option<Content>,
}

/// Limits for each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskArtifactLimits {
    /// Maximum number of files.
    pub files: u64,
    /// Maximum total size, in bytes.
    pub total_bytes: u64,
}

/// Names one of [`TaskArtifactLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskArtifactLimit {
    /// [`TaskArtifactLimits::files`].
    Files,
    /// [`TaskArtifactLimits::total_bytes`].
    TotalBytes,
}

/// A file can't be stored.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// A limit would be exceeded.
    #[error("{limit} would be {would_be}, and may be {most}")]
    TooMuch {
        /// The limit.
        limit: TaskArtifactLimit,
        /// Amount that would be reached.
        would_be: u64,
        /// Maximum amount.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Maximum number of files deleted in one statement.
const MOST: u32 = 500;

macro_rules! columns {
    () => {
        "path, sha256, size_bytes, content_type, job_id, run_id, created_at_ms, updated_at_ms"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM task_artifacts WHERE task_key = $1 AND path = $2");

const OTHERS: &str = "SELECT count(*) AS files, CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS bytes \
    FROM task_artifacts WHERE task_key = $1 AND path <> $2";

const PUT: &str = concat!(
    "INSERT INTO task_artifacts (task_key, path, sha256, size_bytes, content_type, job_id, run_id, created_at_ms, \
     updated_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) ON CONFLICT (task_key, path) DO UPDATE SET \
     sha256 = excluded.sha256, size_bytes = excluded.size_bytes, content_type = excluded.content_type, \
     job_id = excluded.job_id, run_id = excluded.run_id, updated_at_ms = excluded.updated_at_ms RETURNING ",
    columns!()
);

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM task_artifacts WHERE task_key = $1 AND path > $2 AND substr(path, 1, length($3)) = $3 \
     ORDER BY path LIMIT $4"
);

const OF_JOB: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM task_artifacts WHERE task_key = $1 AND lower(job_id) = $2 ORDER BY path"
);

const DELETE: &str = "DELETE FROM task_artifacts WHERE task_key = $1 AND path = $2";

const EXPIRED: &str = "DELETE FROM task_artifacts WHERE (task_key, path) IN (\
    SELECT task_key, path FROM task_artifacts WHERE updated_at_ms < $1 \
    AND task_key NOT IN (SELECT lower(task_id) FROM jobs) ORDER BY updated_at_ms LIMIT $2)";

// === impl TaskArtifacts ===

impl TaskArtifacts {
    /// Creates the store on a database, with limits for each task.
    pub fn new(database: Database, limits: TaskArtifactLimits) -> Self {
        Self { database, limits }
    }

    /// Stores a file; replaces the one with the same path. Its content must have been stored before
    /// ([`crate::artifacts::Artifacts::keep_bytes`]), and recently.
    ///
    /// # Errors
    /// [`PutError`]; nothing has changed then, unless the database reports that the outcome is in doubt.
    pub async fn put(
        &self,
        task_id: &TaskId,
        put: NewTaskArtifact,
        now: Timestamp,
    ) -> Result<StoredArtifact, PutError> {
        let (artifacts, task) = (self.clone(), task_id.key());
        to_the_end(async move {
            let path = put.path.as_str();
            let mut transaction = artifacts.database.begin().await?;
            transaction.alone(&format!("task_artifacts {task}")).await?;
            let others = transaction.fetch(OTHERS, values![task.as_str(), path]).await?;
            let (files, bytes) = match others.first() {
                Some(others) => (others.count("files")?, others.count("bytes")?),
                None => (0, 0),
            };
            artifacts.limits.check(files + 1, bytes.saturating_add(put.content.size_bytes()))?;
            let before = transaction.fetch(FIND, values![task.as_str(), path]).await?;
            let replaced = before.first().map(content).transpose()?;
            let values = values![
                task,
                path,
                put.content.sha256(),
                put.content.size_bytes(),
                put.content_type.map(String::from),
                put.job_id.map(String::from),
                put.run_id.map(String::from),
                now,
            ];
            let rows = transaction.fetch(PUT, values).await?;
            let row = rows.first().ok_or_else(|| unreadable("what was written is not there".into()))?;
            let artifact = TaskArtifact::read(row)?;
            transaction.commit("task_artifact_put").await?;
            Ok(StoredArtifact { artifact, replaced })
        })
        .await
    }

    /// Returns the file with that path, if the task has one.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(
        &self,
        task_id: &TaskId,
        path: &ArtifactPath,
    ) -> Result<Option<TaskArtifact>, DatabaseError> {
        let rows = self.database.fetch(FIND, values![task_id.key(), path.as_str()]).await?;
        rows.first().map(TaskArtifact::read).transpose()
    }

    /// Lists the files after that path whose paths begin with a text.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        task_id: &TaskId,
        prefix: &str,
        after: Option<&ArtifactPath>,
        most: u32,
    ) -> Result<Page<TaskArtifact, ArtifactPath>, DatabaseError> {
        // No path has a NUL, and one of the databases rejects it as an argument.
        if prefix.contains('\0') {
            return Ok(Page { entries: Vec::new(), next: None });
        }
        let size = PageSize::of(most);
        let after = after.map_or("", ArtifactPath::as_str);
        let rows = self.database.fetch(LIST, values![task_id.key(), after, prefix, size.to_fetch]).await?;
        let entries = rows.iter().map(TaskArtifact::read).collect::<Result<_, _>>()?;
        Ok(Page::cut(entries, size, |artifact: &TaskArtifact| artifact.path.clone()))
    }

    /// Returns the files of a task that one of its jobs has written last, by path.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn of_job(&self, task_id: &TaskId, job_id: &JobId) -> Result<Vec<TaskArtifact>, DatabaseError> {
        let rows = self.database.fetch(OF_JOB, values![task_id.key(), job_id.key()]).await?;
        rows.iter().map(TaskArtifact::read).collect()
    }

    /// Deletes a file; returns true if it existed. Its content is removed once nothing refers to it.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be removed.
    pub async fn delete(&self, task_id: &TaskId, path: &ArtifactPath) -> Result<bool, DatabaseError> {
        let removed = self.write("task_artifact_delete", DELETE, values![task_id.key(), path.as_str()]);
        Ok(removed.await? > 0)
    }

    /// Deletes some files that were written before that time, of tasks without stored jobs; returns their number, and 0
    /// when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn expire(&self, before: Timestamp) -> Result<u64, DatabaseError> {
        self.write("task_artifacts_expire", EXPIRED, values![before, MOST]).await
    }

    async fn write(
        &self,
        name: &'static str,
        sql: &'static str,
        values: Vec<crate::database::Value>,
    ) -> Result<u64, DatabaseError> {
        let database = self.database.clone();
        to_the_end(async move { database.write(name, sql, values).await }).await
    }
}

// === impl TaskArtifact ===

impl TaskArtifact {
    fn read(row: &Row) -> Result<Self, DatabaseError> {
        Ok(Self {
            path: row.parsed("path", ArtifactPath::parse)?,
            content: content(row)?,
            content_type: row.optionally_parsed("content_type", MediaType::parse)?,
            job_id: row.optionally_parsed("job_id", JobId::parse)?,
            run_id: row.optionally_parsed("run_id", RunId::parse)?,
            created_at: row.time("created_at_ms")?,
            updated_at: row.time("updated_at_ms")?,
        })
    }
}

fn content(row: &Row) -> Result<Content, DatabaseError> {
    let size_bytes = row.count("size_bytes")?;
    row.parsed("sha256", |sha256| Content::stored(sha256, size_bytes))
}

// === impl TaskArtifactLimits ===

impl Default for TaskArtifactLimits {
    fn default() -> Self {
        Self { files: 1_000, total_bytes: 1 << 30 }
    }
}

impl TaskArtifactLimits {
    fn check(&self, files: u64, bytes: u64) -> Result<(), PutError> {
        let within = |limit, would_be, most| match would_be > most {
            true => Err(PutError::TooMuch { limit, would_be, most }),
            false => Ok(()),
        };
        within(TaskArtifactLimit::Files, files, self.files)?;
        within(TaskArtifactLimit::TotalBytes, bytes, self.total_bytes)
    }
}

// === impl TaskArtifactLimit ===

impl TaskArtifactLimit {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::TotalBytes => "total_bytes",
        }
    }
}

impl fmt::Display for TaskArtifactLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
