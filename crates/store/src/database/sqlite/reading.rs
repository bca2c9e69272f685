//! Connections for reading, and execution of statements on any connection.

use super::batch::closed;
use super::{BUSY, PREPARED};
use crate::database::DatabaseError;
use crate::database::row::{OwnedRow, Row, Value};
use rusqlite::{CachedStatement, Connection, Error, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// A pool of connections, which are opened when they are needed.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    room: Arc<Semaphore>,
}

const MOST: usize = 4;

// === impl Readers ===

impl Readers {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: Arc::new(path.to_owned()), idle: Arc::default(), room: Arc::new(Semaphore::new(MOST)) }
    }

    pub(super) async fn fetch(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        const DOING: &str = "read the database";
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| DatabaseError::of(DOING, closed()))?;
        let readers = self.clone();
        // The read goes on even if its caller has stopped waiting.
        let fetched = tokio::task::spawn_blocking(move || {
            let connection = readers.idle().pop().map_or_else(|| readers.connect(), Ok)?;
            let rows = fetch(&connection, sql, &values);
            readers.idle().push(connection);
            drop(room);
            rows
        });
        let rows = fetched.await.map_err(DatabaseError::died)?;
        rows.map_err(|error| DatabaseError::of(DOING, error))
    }

    pub(super) fn close(&self) {
        self.room.close();
        self.idle().clear();
    }

    fn connect(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&*self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(PREPARED);
        Ok(connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows that a statement returns.
pub(super) fn fetch(connection: &Connection, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Error> {
    let mut statement = bound(connection, sql, values)?;
    let names: Arc<[String]> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut rows = statement.raw_query();
    let mut fetched = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..names.len()).map(|column| row.get(column)).collect::<Result<_, _>>()?;
        fetched.push(Row::Sqlite(OwnedRow { names: Arc::clone(&names), values }));
    }
    Ok(fetched)
}

/// The number of rows that a statement has changed.
pub(super) fn execute(connection: &Connection, sql: &'static str, values: &[Value]) -> Result<u64, Error> {
    bound(connection, sql, values)?.raw_execute().map(|changed| changed as u64)
}

/// A statement with its arguments. Those are numbered (`$2`) in any order, which to SQLite are names.
fn bound<'c>(
    connection: &'c Connection,
    sql: &'static str,
    values: &[Value],
) -> Result<CachedStatement<'c>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or_default();
        let value = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let value = value.and_then(|number| values.get(number.checked_sub(1)?));
        let value = value.ok_or_else(|| Error::InvalidParameterName(name.to_owned()))?;
        match value {
            Value::Text(text) => statement.raw_bind_parameter(index, text)?,
            Value::Integer(number) => statement.raw_bind_parameter(index, number)?,
        }
    }
    Ok(statement)
}
