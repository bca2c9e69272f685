//! SQLite, in a file of the state directory.
//!
//! One connection writes, others read. Writers take turns. Turns that follow each other closely are committed together,
//! with one disk sync for all. The statements of a turn run on the calling thread, as they only work on pages in
//! memory. Disk syncs run on threads of their own.
//!
//! ```text
//! begin ─► (BEGIN) SAVEPOINT ─► statements ─► RELEASE ──┐   the committer
//! begin ─────────► SAVEPOINT ─► statements ─► RELEASE ──┼─► COMMIT ─► all of them are notified
//! begin ─────────► SAVEPOINT ─► dropped: ROLLBACK TO    │      └─► the log is long: checkpoint, by a thread of its own
//! ```

mod batch;
mod checkpoint;
mod committer;
mod reading;

use super::row::{Row, Value};
use super::{DatabaseError, FailureKind};
use batch::{CommitResult, WriteBatch};
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use committer::Committer;
use reading::Readers;
use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, Migrations};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

/// A file of SQLite.
#[derive(Debug, Clone)]
pub(super) struct Sqlite {
    readers: Readers,
    batch: Arc<Mutex<WriteBatch>>,
    committer: Committer,
}

/// A turn at writing.
#[derive(Debug)]
pub(crate) struct SqliteTransaction {
    batch: OwnedMutexGuard<WriteBatch>,
    committer: Committer,
}

/// Migrations of the schema, in order: name and SQL. All that are missing are executed in one transaction.
pub(super) type SchemaMigrations = &'static [(&'static str, &'static str)];

pub(super) const JOBS: SchemaMigrations = &[
    ("jobs", include_str!("../../migrations/sqlite/0001_jobs.sql")),
    ("memory", include_str!("../../migrations/sqlite/0002_memory.sql")),
    ("task artifacts", include_str!("../../migrations/sqlite/0003_task_artifacts.sql")),
    ("agent tokens", include_str!("../../migrations/sqlite/0004_agent_tokens.sql")),
    ("skills", include_str!("../../migrations/sqlite/0005_skills.sql")),
    ("preferences", include_str!("../../migrations/sqlite/0006_preferences.sql")),
    ("settings", include_str!("../../migrations/sqlite/0007_settings.sql")),
    ("approvals", include_str!("../../migrations/sqlite/0008_approvals.sql")),
    ("trust", include_str!("../../migrations/sqlite/0009_trust.sql")),
    ("agents of tokens", include_str!("../../migrations/sqlite/0010_token_agents.sql")),
    ("approval scopes", include_str!("../../migrations/sqlite/0011_approval_scopes.sql")),
    ("execution grants", include_str!("../../migrations/sqlite/0012_execution_grants.sql")),
    ("instance abilities", include_str!("../../migrations/sqlite/0013_instance_abilities.sql")),
    ("projects of jobs", include_str!("../../migrations/sqlite/0014_job_projects.sql")),
    ("projects of tasks", include_str!("../../migrations/sqlite/0015_task_projects.sql")),
];
pub(super) const TELEMETRY: SchemaMigrations =
    &[("telemetry", include_str!("../../migrations/telemetry/0001_telemetry.sql"))];

/// Timeout while another process writes.
const BUSY: Duration = Duration::from_secs(10);

/// Poll interval while another process writes.
const STILL_BUSY: Duration = Duration::from_millis(5);

/// Statements that a connection keeps prepared.
const PREPARED: usize = 64;

// === impl Sqlite ===

impl Sqlite {
    pub(super) async fn open(path: &Path, steps: SchemaMigrations) -> Result<Self, DatabaseError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || Self::open_now(&path, steps)).await;
        opened.map_err(DatabaseError::died)?
    }

    fn open_now(path: &Path, steps: SchemaMigrations) -> Result<Self, DatabaseError> {
        let path = &trusted(path).map_err(|error| DatabaseError::of("open the database", error))?;
        let open = || connect(path).map_err(|error| DatabaseError::of("open the database", error));
        let mut connection = open()?;
        belljar_failpoint::reached("migrate.before");
        let steps = Migrations::new(steps.iter().map(|&(name, sql)| M::up(sql).comment(name)).collect());
        let migrated = steps.to_latest(&mut connection);
        migrated.map_err(|error| DatabaseError::of("bring the database up to date", error))?;
        belljar_failpoint::reached("migrate.after");
        // A caller that waits for another process must not block a thread.
        let patient = connection.busy_timeout(Duration::ZERO);
        patient.map_err(|error| DatabaseError::of("open the database", error))?;
        checkpoint::watch(&connection);
        let batch = Arc::new(Mutex::new(WriteBatch::new(connection)));
        let committer = Committer::start(&batch, open()?)
            .map_err(|error| DatabaseError::of("start a thread that commits", error))?;
        Ok(Self { readers: Readers::of(path), batch, committer })
    }

    pub(super) async fn begin(&self) -> Result<SqliteTransaction, DatabaseError> {
        let given_up = Instant::now() + BUSY;
        loop {
            let mut batch = Arc::clone(&self.batch).lock_owned().await;
            match batch.begin_turn() {
                Ok(()) => return Ok(SqliteTransaction { batch, committer: self.committer.clone() }),
                Err(error) if is_busy(&error) && Instant::now() < given_up => {}
                Err(error) => return Err(DatabaseError::of("begin a transaction", error)),
            }
            drop(batch);
            tokio::time::sleep(STILL_BUSY).await;
        }
    }

    pub(super) async fn fetch(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        self.readers.fetch(sql, values).await
    }

    pub(super) async fn close(&self) {
        let batch = Arc::clone(&self.batch).lock_owned().await;
        let closed = tokio::task::spawn_blocking(move || {
            let mut batch = batch;
            batch.close();
        });
        // Committed data is on disk already.
        let _ = closed.await;
        self.readers.close();
    }
}

// === impl SqliteTransaction ===

impl SqliteTransaction {
    pub(super) fn fetch(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        let rows = self.batch.connection().and_then(|connection| reading::fetch(connection, sql, values));
        rows.map_err(|error| DatabaseError::of("write to the database", error))
    }

    pub(super) fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<u64, DatabaseError> {
        let done = self.batch.connection().and_then(|connection| reading::execute(connection, sql, values));
        done.map_err(|error| DatabaseError::of("write to the database", error))
    }

    pub(super) async fn commit(mut self) -> Result<(), DatabaseError> {
        const DOING: &str = "commit to the database";
        let (done, committed) = oneshot::channel::<CommitResult>();
        self.batch.end_turn(done).map_err(|error| DatabaseError::of(DOING, error))?;
        drop(self);
        match committed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                Err(DatabaseError { doing: DOING, kind: FailureKind::Unavailable, source: Box::new(error) })
            }
            // The sender is dropped only if the committer thread has ended.
            Err(gone) => Err(DatabaseError { doing: DOING, kind: FailureKind::InDoubt, source: gone.into() }),
        }
    }
}

impl Drop for SqliteTransaction {
    fn drop(&mut self) {
        // The committer commits it, or undoes it.
        self.committer.wake();
    }
}

/// Creates an empty file if there is none, and returns its path without links. Files that SQLite creates beside it have
/// the same mode and owner.
///
/// # Errors
/// [`UntrustedFileError`] as the source if another user or a sandbox could write the database, or put files of SQLite's
/// beside it.
fn trusted(path: &Path) -> std::io::Result<PathBuf> {
    trusted_file::create_new(path)?;
    trusted_file::check(path)?;
    // SQLite follows links, and has its other files beside the target.
    let path = path.canonicalize()?;
    trusted_file::check_directory(path.parent().unwrap_or(Path::new("/")))?;
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut beside = path.clone().into_os_string();
        beside.push(suffix);
        match trusted_file::check(Path::new(&beside)) {
            Ok(_) | Err(UntrustedFileError::Look { source: Errno::NOENT, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(path)
}

/// Opens a connection for writing, whose commits are on disk when they are acknowledged.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}
