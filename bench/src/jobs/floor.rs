//! What no node can do with less: an insert that is on the disk, and a sandbox.

use crate::sandboxes::House;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A table of a bare database.
pub(super) struct Table {
    place: Location,
    runtime: Runtime,
    connection: Connected,
}

#[derive(Clone)]
enum Location {
    File(PathBuf),
    Server(String),
}

enum Connected {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// A backend that has begun before there were threads.
pub(super) struct Floor(House);

/// As long as what a node keeps of a trivial job.
const DOCUMENT_BYTES: usize = 400;

const INSERT: &str = "INSERT INTO floor (document) VALUES ($1)";

// === impl Table ===

impl Table {
    /// In SQLite, as durable as a node's.
    pub(super) fn in_file(path: &Path) -> Self {
        Self::at(Location::File(path.to_owned()))
    }

    /// In PostgreSQL, as it is set up.
    pub(super) fn on_server(url: &str) -> Self {
        Self::at(Location::Server(url.to_owned()))
    }

    /// By a connection of its own.
    pub(super) fn again(&self) -> Self {
        Self::at(self.place.clone())
    }

    fn at(place: Location) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connection = runtime.block_on(connect(&place)).expect("a connection to a database");
        Self { place, runtime, connection }
    }

    /// One row. When this is back, it is on the disk.
    pub(super) fn insert(&mut self) {
        let document = "x".repeat(DOCUMENT_BYTES);
        let inserted = self.runtime.block_on(async {
            match &mut self.connection {
                Connected::Sqlite(one) => sqlx::query(INSERT).bind(document).execute(one).await.map(drop),
                Connected::Postgres(one) => sqlx::query(INSERT).bind(document).execute(one).await.map(drop),
            }
        });
        inserted.expect("an insert");
    }
}

async fn connect(place: &Location) -> Result<Connected, sqlx::Error> {
    match place {
        Location::File(path) => {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(60));
            let mut connection = SqliteConnection::connect_with(&options).await?;
            let make =
                "CREATE TABLE IF NOT EXISTS floor (number INTEGER PRIMARY KEY AUTOINCREMENT, document TEXT)";
            sqlx::query(make).execute(&mut connection).await?;
            Ok(Connected::Sqlite(connection))
        }
        Location::Server(url) => {
            let mut connection = PgConnection::connect(url).await?;
            let make = "CREATE TABLE IF NOT EXISTS floor (number BIGSERIAL PRIMARY KEY, document TEXT)";
            sqlx::query(make).execute(&mut connection).await?;
            Ok(Connected::Postgres(connection))
        }
    }
}

// === impl Floor ===

impl Floor {
    pub(super) fn new() -> Self {
        Self(House::new(0))
    }

    /// One from nothing to gone, with a program in it.
    pub(super) fn sandbox(&self) {
        self.0.turn();
    }
}
