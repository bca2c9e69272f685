//! The minimum that every node needs: an insert that is on disk, and a sandbox.

use crate::sandboxes::EarlyBackend;
use sqlx::{Connection, PgConnection};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A table of a bare database.
pub(super) struct Table {
    place: Location,
    runtime: Runtime,
    connection: BareConnection,
}

/// The location of a table.
#[derive(Clone)]
pub(super) enum Location {
    File(PathBuf),
    Server(String),
}

enum BareConnection {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
}

/// A backend that was started before this process had threads.
pub(super) struct BareBackend(EarlyBackend);

/// Length of a node's record of a trivial job, in bytes.
const DOCUMENT_BYTES: usize = 400;

const INSERT: &str = "INSERT INTO floor (document) VALUES ($1)";

// === impl Table ===

impl Table {
    /// Creates a table in SQLite, with the durability of a node's database.
    pub(super) fn in_file(path: &Path) -> Self {
        Self::at(Location::File(path.to_owned()))
    }

    /// Creates a table in PostgreSQL with the server's settings.
    pub(super) fn on_server(url: &str) -> Self {
        Self::at(Location::Server(url.to_owned()))
    }

    /// Returns the location, to open the table again.
    pub(super) fn location(&self) -> Location {
        self.place.clone()
    }

    fn at(place: Location) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connection = match &place {
            Location::File(path) => BareConnection::Sqlite(open(path).expect("a database")),
            Location::Server(url) => {
                BareConnection::Postgres(runtime.block_on(connect(url)).expect("a connection to a database"))
            }
        };
        Self { place, runtime, connection }
    }

    /// Inserts one row. It is on disk when this returns.
    pub(super) fn insert(&mut self) {
        let document = "x".repeat(DOCUMENT_BYTES);
        match &mut self.connection {
            BareConnection::Sqlite(one) => {
                let mut insert = one.prepare_cached(INSERT).expect("a statement");
                insert.execute([document]).expect("an insert");
            }
            BareConnection::Postgres(one) => {
                let insert = sqlx::query(INSERT).bind(document).execute(one);
                self.runtime.block_on(insert).expect("an insert");
            }
        }
    }
}

// === impl Location ===

impl Location {
    /// Opens the table with a connection of its own.
    pub(super) fn open(&self) -> Table {
        Table::at(self.clone())
    }
}

fn open(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS floor (number INTEGER PRIMARY KEY AUTOINCREMENT, document TEXT)",
    )?;
    Ok(connection)
}

async fn connect(url: &str) -> Result<PgConnection, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS floor (number BIGSERIAL PRIMARY KEY, document TEXT)")
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

// === impl BareBackend ===

impl BareBackend {
    pub(super) fn new() -> Self {
        Self(EarlyBackend::new(0))
    }

    /// Runs one sandbox with a program from creation to removal.
    pub(super) fn sandbox(&self) {
        self.0.turn();
    }
}
