//! The database: SQLite in the state directory, or a PostgreSQL server.
//!
//! Callers write their SQL once, with `$1` for arguments, in the dialect that both engines share. Where the engines
//! differ, callers give both variants ([`Sql`]). The two engines below contain all differences: how they are opened,
//! how they lock, when they commit.

mod failing;
mod postgres;
mod row;
mod sqlite;

pub(crate) use row::{Row, Value, unreadable, values};

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Location of the database.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// An SQLite file, created if it doesn't exist.
    File(PathBuf),
    /// A server, as `postgres://user:password@host/database`.
    Server(String),
}

/// An open database. Clones share it.
#[derive(Debug, Clone)]
pub struct Database {
    engine: Engine,
    /// True once a stored value could not be read.
    is_damaged: Arc<AtomicBool>,
}

/// Engine of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// An operation on the database failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {doing}")]
pub struct DatabaseError {
    /// Operation that failed.
    pub doing: &'static str,
    /// Kind of failure.
    pub kind: FailureKind,
    /// Underlying error.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Kind of a database failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The database can't be reached, or has no space. Nothing was done; a retry may succeed.
    Unavailable,
    /// It is unknown whether the change was made.
    InDoubt,
    /// The database rejects the operation.
    Refused,
}

#[derive(Debug, Clone)]
enum Engine {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

/// A transaction: its statements take effect together or not at all. Dropping it rolls it back.
#[derive(Debug)]
pub(crate) enum Transaction {
    Sqlite(sqlite::SqliteTransaction),
    Postgres(postgres::PostgresTransaction),
}

/// A statement in the dialect of each engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    sqlite: &'static str,
    postgres: &'static str,
}

/// Statement for an advisory lock. If two names have the same hash, their holders wait for each other needlessly.
const ALONE: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// Runs an operation to its end even if its caller stops waiting: a client that disconnects must not leave a change
/// half done.
pub(crate) async fn to_the_end<T: Send + 'static, E: From<DatabaseError> + Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(died) => Err(DatabaseError::died(died).into()),
    }
}

/// Classifies the errors of an engine.
pub(crate) trait EngineFailure: Error + Send + Sync + 'static {
    /// Returns the kind of failure.
    fn kind(&self) -> FailureKind;
}

// === impl Location ===

impl Location {
    /// Parses `sqlite:PATH` or `postgres://…`.
    ///
    /// # Errors
    /// The text itself, without its secrets, when it is neither.
    pub fn parse(text: &str) -> Result<Self, UnknownLocationError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Server(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").filter(|path| !path.is_empty());
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        path.map(|path| Self::File(path.into()))
            .ok_or_else(|| UnknownLocationError { scheme: scheme.to_owned() })
    }
}

/// Returns true if a database's URL holds a password, which a command line shows to every user of the machine.
pub fn holds_password(url: &str) -> bool {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let Some(rest) = rest else { return false };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, more) = rest.split_at(end);
    let of_user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let parameters = more.split_once('?').map_or("", |(_, query)| query).split(['&', '#']);
    let mut names = parameters.filter_map(|parameter| parameter.split_once('=')).map(|(name, _)| name);
    of_user.is_some_and(|(_, password)| !password.is_empty()) || names.any(|name| name.ends_with("password"))
}

/// A text names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{scheme:?} is no database that is known; `sqlite:PATH` and `postgres://USER@HOST/DATABASE` are")]
pub struct UnknownLocationError {
    scheme: String,
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // It may have a password in it.
            Self::Server(_) => f.debug_tuple("Server").finish_non_exhaustive(),
        }
    }
}

// === impl Database ===

impl Database {
    /// Opens the database, and brings its schema up to date.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be opened, or a newer version has changed its schema.
    pub async fn open(location: &Location) -> Result<Self, DatabaseError> {
        let engine = match location {
            Location::File(path) => Engine::Sqlite(sqlite::Sqlite::open(path, sqlite::JOBS).await?),
            Location::Server(url) => Engine::Postgres(postgres::Postgres::open(url).await?),
        };
        Ok(Self { engine, is_damaged: Arc::default() })
    }

    /// Opens a node's telemetry, which is always a file, wherever jobs are stored.
    pub(crate) async fn open_telemetry(path: &Path) -> Result<Self, DatabaseError> {
        let engine = Engine::Sqlite(sqlite::Sqlite::open(path, sqlite::TELEMETRY).await?);
        Ok(Self { engine, is_damaged: Arc::default() })
    }

    /// Returns true if a read or write since it was opened has found damage.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Remembers a failure that is due to damage.
    fn noted<T>(&self, done: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        if done.as_ref().is_err_and(|error| failing::is_damage(&*error.source)) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        done
    }

    /// Returns the database's engine.
    pub fn kind(&self) -> EngineKind {
        match self.engine {
            Engine::Sqlite(_) => EngineKind::Sqlite,
            Engine::Postgres(_) => EngineKind::Postgres,
        }
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&self) -> Result<Transaction, DatabaseError> {
        Ok(match &self.engine {
            Engine::Sqlite(sqlite) => Transaction::Sqlite(self.noted(sqlite.begin().await)?),
            Engine::Postgres(postgres) => Transaction::Postgres(postgres.begin().await?),
        })
    }

    /// Executes a statement as a transaction of its own; returns the number of changed rows. The change is on disk when
    /// this returns without an error.
    pub(crate) async fn write(
        &self,
        write: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        if let Engine::Postgres(postgres) = &self.engine {
            belljar_failpoint::before(write);
            let changed = postgres.execute(sql, values).await?;
            belljar_failpoint::after(write);
            return Ok(changed);
        }
        let mut transaction = self.begin().await?;
        let changed = self.noted(transaction.execute(sql, values).await)?;
        transaction.commit(write).await?;
        Ok(changed)
    }

    /// Executes a statement as a transaction of its own; returns its first row, which shows that it took effect.
    pub(crate) async fn write_returning(
        &self,
        write: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<Row>, DatabaseError> {
        if let Engine::Postgres(postgres) = &self.engine {
            belljar_failpoint::before(write);
            let rows = postgres.write(sql, values).await?;
            belljar_failpoint::after(write);
            return Ok(rows.into_iter().next());
        }
        let mut transaction = self.begin().await?;
        let rows = self.noted(transaction.fetch(sql, values).await)?;
        transaction.commit(write).await?;
        Ok(rows.into_iter().next())
    }

    /// Reads committed data.
    pub(crate) async fn fetch(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => self.noted(sqlite.fetch(sql.into().sqlite, values).await),
            Engine::Postgres(postgres) => postgres.fetch(sql.into().postgres, values).await,
        }
    }

    /// Closes the database after the operations in progress.
    pub async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}

// === impl Transaction ===

impl Transaction {
    /// Executes a statement; returns its rows.
    pub(crate) async fn fetch(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        match self {
            Self::Sqlite(turn) => turn.fetch(sql.into().sqlite, &values),
            Self::Postgres(turn) => turn.fetch(sql.into().postgres, values).await,
        }
    }

    /// Executes a statement; returns the number of changed rows.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        match self {
            Self::Sqlite(turn) => turn.execute(sql.into().sqlite, &values),
            Self::Postgres(turn) => turn.execute(sql.into().postgres, values).await,
        }
    }

    /// Waits until no other transaction holds this advisory lock; it is held until this transaction is over. On SQLite
    /// there is nothing to wait for, because a writer is always alone.
    pub(crate) async fn alone(&mut self, on: &str) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(turn) => turn.fetch(ALONE, values![on]).await.map(drop),
        }
    }

    /// Commits the transaction. It is on disk when this returns without an error.
    pub(crate) async fn commit(self, write: &'static str) -> Result<(), DatabaseError> {
        belljar_failpoint::before(write);
        match self {
            Self::Sqlite(turn) => turn.commit().await?,
            Self::Postgres(turn) => turn.commit().await?,
        }
        belljar_failpoint::after(write);
        Ok(())
    }
}

// === impl Sql ===

impl Sql {
    pub(crate) const fn of_each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}

impl From<&'static str> for Sql {
    fn from(same: &'static str) -> Self {
        Self { sqlite: same, postgres: same }
    }
}

// === impl DatabaseError ===

impl DatabaseError {
    pub(crate) fn of(doing: &'static str, source: impl EngineFailure) -> Self {
        Self { doing, kind: source.kind(), source: source.into() }
    }

    /// Error for an operation whose task panicked or was cancelled.
    pub(crate) fn died(error: tokio::task::JoinError) -> Self {
        Self { doing: "finish what was begun", kind: FailureKind::InDoubt, source: error.into() }
    }

    fn in_doubt(self) -> Self {
        match self.kind {
            FailureKind::Unavailable => Self { kind: FailureKind::InDoubt, ..self },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn database_stays_damaged_after_the_first_corruption_error() {
        use std::os::unix::fs::FileExt;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("node.db");
        let location = Location::File(path.clone());
        let count =
            |database: Database| async move { database.fetch("SELECT * FROM jobs", Vec::new()).await };
        let sound = Database::open(&location).await.unwrap();
        count(sound.clone()).await.unwrap();
        assert!(!sound.is_damaged());
        sound.close().await;
        drop(sound);
        let connection = rusqlite::Connection::open(&path).unwrap();
        let sql = "SELECT rootpage - 1, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'jobs'";
        let (page, size): (i64, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&vec![0xff; usize::try_from(size).unwrap()], (page * size).cast_unsigned())
            .unwrap();
        let damaged = Database::open(&location).await.unwrap();
        assert!(!damaged.is_damaged());
        count(damaged.clone()).await.unwrap_err();
        assert!(damaged.is_damaged());
    }

    #[test]
    fn password_in_database_url_is_detected() {
        for url in [
            "postgres://user:secret@host/database",
            "postgresql://user:sec@ret@host:5432",
            "postgres://host/database?user=me&password=secret",
            "postgres://host?sslpassword=secret",
        ] {
            assert!(holds_password(url), "{url}");
        }
        for url in [
            "postgres://user@host:5432/database",
            "postgres://user:@host/",
            "postgres://host/a:b@c",
            "sqlite:/a:b@c",
        ] {
            assert!(!holds_password(url), "{url}");
        }
    }
}
