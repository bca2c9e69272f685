//! SQLite, in a file of the state directory.
//!
//! One connection writes, others read. Who writes takes turns, and turns that come close after each other are committed
//! together: one wait for the disk for all of them.
//!
//! ```text
//! begin ─► (BEGIN) SAVEPOINT ─► statements ─► RELEASE ──┐
//! begin ─────────► SAVEPOINT ─► statements ─► RELEASE ──┼─► COMMIT ─► all of them are told
//! begin ─────────► SAVEPOINT ─► dropped: ROLLBACK TO    │
//! ```

use super::{DatabaseError, Failing, Row, Step, Value, migrator};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqliteConnection};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, oneshot};

/// A file of SQLite.
#[derive(Debug, Clone)]
pub(super) struct Sqlite {
    readers: SqlitePool,
    writer: Writer,
}

#[derive(Debug, Clone)]
struct Writer {
    batch: Arc<Mutex<Batch>>,
    /// Somebody waits for a commit, or has left one to be undone.
    wake: Arc<Notify>,
}

/// Turns that are committed together.
#[derive(Debug)]
struct Batch {
    /// Nothing once it is closed.
    connection: Option<SqliteConnection>,
    stage: Stage,
    waiting: Vec<oneshot::Sender<Committed>>,
}

/// Whether a batch was kept.
type Committed = Result<(), Arc<sqlx::Error>>;

/// How far a batch is. What is not done is said before it is begun: a turn that is dropped in the middle of a statement
/// leaves word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no transaction.
    Idle,
    /// There is one, and no turn is on.
    Open,
    /// A turn is on, or was and is to be undone.
    InTurn,
    /// A transaction was to begin, or to end: it can't be known whether it has.
    Unknown,
}

/// A turn at writing.
#[derive(Debug)]
pub(crate) struct Turn {
    batch: OwnedMutexGuard<Batch>,
    wake: Arc<Notify>,
}

pub(super) const JOBS: &[Step] = &[(1, "jobs", include_str!("../../migrations/sqlite/0001_jobs.sql"))];
pub(super) const TELEMETRY: &[Step] =
    &[(1, "telemetry", include_str!("../../migrations/telemetry/0001_telemetry.sql"))];

const READERS: u32 = 4;

/// Another process may write, too.
const BUSY: Duration = Duration::from_secs(10);

// === impl Sqlite ===

impl Sqlite {
    pub(super) async fn open(path: &Path, steps: &'static [Step]) -> Result<Self, DatabaseError> {
        let failed = |error| DatabaseError::of("open the database", error);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        make_private(path).map_err(|error| failed(error.into()))?;
        let mut connection = options.connect().await.map_err(failed)?;
        belljar_failpoint::reached("migrate.before");
        let migrated = migrator(steps).run_direct(None, &mut connection, false).await;
        migrated.map_err(|error| DatabaseError::of("bring the database up to date", error.into()))?;
        belljar_failpoint::reached("migrate.after");
        let readers = SqlitePoolOptions::new().max_connections(READERS);
        let readers = readers.connect_with(options.read_only(true)).await.map_err(failed)?;
        Ok(Self { readers, writer: Writer::begin(connection) })
    }

    pub(super) async fn begin(&self) -> Result<Turn, DatabaseError> {
        let mut batch = Arc::clone(&self.writer.batch).lock_owned().await;
        let begun = batch.begin_turn().await;
        begun.map_err(|error| DatabaseError::of("begin a transaction", error))?;
        Ok(Turn { batch, wake: Arc::clone(&self.writer.wake) })
    }

    pub(super) async fn fetch(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let rows = bound(sql, values).fetch_all(&self.readers).await;
        let rows = rows.map_err(|error| DatabaseError::of("read the database", error))?;
        Ok(rows.into_iter().map(Row::Sqlite).collect())
    }

    pub(super) async fn close(&self) {
        let mut batch = self.writer.batch.lock().await;
        batch.settle().await;
        if let Some(connection) = batch.connection.take() {
            // What is committed is on the disk already.
            let _ = sqlx::Connection::close(connection).await;
        }
        drop(batch);
        self.readers.close().await;
    }
}

// === impl Writer ===

impl Writer {
    /// Starts what commits.
    fn begin(connection: SqliteConnection) -> Self {
        let batch = Batch { connection: Some(connection), stage: Stage::Idle, waiting: Vec::new() };
        let writer = Self { batch: Arc::new(Mutex::new(batch)), wake: Arc::default() };
        let (batch, wake) = (Arc::downgrade(&writer.batch), Arc::clone(&writer.wake));
        tokio::spawn(async move {
            loop {
                wake.notified().await;
                let Some(batch) = batch.upgrade() else { return };
                // Who has asked for a turn meanwhile has it first: the lock is given out in order.
                batch.lock().await.settle().await;
            }
        });
        writer
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The task that commits holds no batch while it sleeps; this lets it see that there is none any more.
        self.wake.notify_one();
    }
}

// === impl Batch ===

impl Batch {
    async fn begin_turn(&mut self) -> Result<(), sqlx::Error> {
        self.undo_left_over().await;
        if self.stage == Stage::Idle {
            self.stage = Stage::Unknown;
            self.run("BEGIN IMMEDIATE").await?;
            self.stage = Stage::Open;
        }
        self.stage = Stage::InTurn;
        self.run("SAVEPOINT turn").await
    }

    /// Commits what is there; with nobody waiting for it there is nothing to keep.
    async fn settle(&mut self) {
        self.undo_left_over().await;
        if self.stage == Stage::Idle {
            return;
        }
        self.stage = Stage::Unknown;
        let done = self.run("COMMIT").await;
        match done {
            Ok(()) => {
                self.stage = Stage::Idle;
                self.tell(&Ok(()));
            }
            Err(error) => self.abandon(error).await,
        }
    }

    /// A turn that nobody has ended is undone; the others in the batch are not.
    async fn undo_left_over(&mut self) {
        match self.stage {
            Stage::Idle | Stage::Open => {}
            Stage::InTurn => match self.run("ROLLBACK TO turn; RELEASE turn").await {
                Ok(()) => self.stage = Stage::Open,
                // The whole transaction may have gone with a disk that is full.
                Err(error) => self.abandon(error).await,
            },
            Stage::Unknown => self.abandon(sqlx::Error::WorkerCrashed).await,
        }
    }

    /// Gives the transaction up, and whoever waits for it is told.
    async fn abandon(&mut self, why: sqlx::Error) {
        self.stage = Stage::Unknown;
        // There may be none any more.
        let _ = self.run("ROLLBACK").await;
        self.stage = Stage::Idle;
        self.tell(&Err(Arc::new(why)));
    }

    fn tell(&mut self, committed: &Committed) {
        for waiting in self.waiting.drain(..) {
            // Who doesn't wait any more doesn't hear of it.
            let _ = waiting.send(committed.clone());
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let connection = self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        sqlx::raw_sql(sql).execute(connection).await.map(drop)
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, DatabaseError> {
        let closed = DatabaseError::of("write to the database", sqlx::Error::PoolClosed);
        self.connection.as_mut().ok_or(closed)
    }
}

// === impl Turn ===

impl Turn {
    pub(super) async fn fetch(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let rows = bound(sql, values).fetch_all(self.batch.connection()?).await;
        let rows = rows.map_err(|error| DatabaseError::of("write to the database", error))?;
        Ok(rows.into_iter().map(Row::Sqlite).collect())
    }

    pub(super) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let done = bound(sql, values).execute(self.batch.connection()?).await;
        Ok(done.map_err(|error| DatabaseError::of("write to the database", error))?.rows_affected())
    }

    pub(super) async fn commit(mut self) -> Result<(), DatabaseError> {
        const DOING: &str = "commit to the database";
        let released = self.batch.run("RELEASE turn").await;
        released.map_err(|error| DatabaseError::of(DOING, error))?;
        self.batch.stage = Stage::Open;
        let (done, committed) = oneshot::channel();
        self.batch.waiting.push(done);
        drop(self);
        match committed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                Err(DatabaseError { doing: DOING, kind: Failing::Unavailable, source: Box::new(error) })
            }
            // Its other end is gone only with the whole runtime.
            Err(gone) => Err(DatabaseError { doing: DOING, kind: Failing::InDoubt, source: gone.into() }),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Makes an empty file if there is none. What SQLite makes beside it has the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

fn bound(sql: &'static str, values: Vec<Value>) -> Query<'static, sqlx::Sqlite, SqliteArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
    })
}
