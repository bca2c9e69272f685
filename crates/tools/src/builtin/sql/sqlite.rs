//! SQLite: a file of this host, opened for one call. SQLite's authorizer decides about each statement when it is compiled, and a
//! reading call opens the file read-only.

mod allowed;

use super::bounds::{Bounds, Rows};
use super::{PATIENCE, Parameter};
use crate::answer::Failure;
use allowed::{Access, authorization};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::tool::DomainCode;
use belljar_trusted::trusted_file;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, Value as Bound, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, ToSql, params_from_iter};
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A migration: its name, the hash of its statements, and the statements.
pub(super) struct Migration {
    pub(super) name: String,
    pub(super) sha256: String,
    pub(super) statements: Vec<String>,
}

/// Cancels a call when it is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

/// Maximum size of a value, in bytes.
const LARGEST_VALUE: i32 = 16 << 20;

/// Number of virtual machine steps between two checks of the time limit.
const BETWEEN_LOOKS: i32 = 10_000;

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS belljar_migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_at TEXT NOT NULL)";

/// Reads rows.
pub(super) async fn query(
    path: &Path,
    sql: String,
    parameters: Vec<Parameter>,
    bounds: Bounds,
) -> Result<Rows, Failure> {
    with(path, Access::Read, move |connection| {
        guard(connection, Access::Read)?;
        read(connection, &sql, &parameters, bounds)
    })
    .await
}

/// Changes rows; returns their number.
pub(super) async fn execute(path: &Path, sql: String, parameters: Vec<Parameter>) -> Result<u64, Failure> {
    with(path, Access::Change, move |connection| {
        guard(connection, Access::Change)?;
        let changed = connection.execute(&sql, params_from_iter(&parameters));
        changed.map(|count| count as u64).map_err(|error| failure(&error))
    })
    .await
}

/// Applies a migration, unless it was applied before; returns true if it was applied now.
pub(super) async fn migrate(path: &Path, migration: Migration) -> Result<bool, Failure> {
    with(path, Access::Define, move |connection| {
        let failed = |error: rusqlite::Error| failure(&error);
        let Migration { name, sha256, statements } = migration;
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        transaction.execute(LEDGER, ()).map_err(failed)?;
        let known = "SELECT sha256 FROM belljar_migrations WHERE name = ?1";
        let known = transaction.query_row(known, [&name], |row| row.get::<_, String>(0)).optional();
        if let Some(there) = known.map_err(failed)? {
            return super::migrate::applied_before(&there, &sha256);
        }
        guard(connection, Access::Define)?;
        for statement in &statements {
            connection.execute(statement, ()).map_err(failed)?;
        }
        unguard(connection)?;
        let entry = "INSERT INTO belljar_migrations VALUES (?1, ?2, strftime('%Y-%m-%dT%H:%M:%SZ'))";
        transaction.execute(entry, [&name, &sha256]).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(true)
    })
    .await
}

/// Reads the schema with a fixed statement, without the authorizer.
pub(super) async fn look(path: &Path, sql: &'static str, table: Option<String>) -> Result<Rows, Failure> {
    with(path, Access::Read, move |connection| {
        let table = table.map_or(Parameter::Null(()), Parameter::Text);
        read(connection, sql, &[table], Bounds::of(Some(usize::MAX)))
    })
    .await
}

/// Checks that the file is a database.
pub(crate) fn check(path: &Path) -> rusqlite::Result<()> {
    let connection = opened(path, Access::Read)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))
}

/// Works with a connection on a blocking thread, and stops when the caller gives up.
async fn with<T: Send + 'static>(
    path: &Path,
    access: Access,
    work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (path, is_over) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
    let _given_up = CancelOnDrop(Arc::clone(&is_over));
    let working = tokio::task::spawn_blocking(move || {
        let connection = opened(&path, access).map_err(|error| unreachable(&error))?;
        let until = Instant::now() + PATIENCE;
        let is_late = move || is_over.load(Ordering::Relaxed) || Instant::now() > until;
        connection.progress_handler(BETWEEN_LOOKS, Some(is_late)).map_err(|error| failure(&error))?;
        work(&connection)
    });
    working.await.map_err(|error| Failure::internal("query the database", &error))?
}

fn opened(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let way = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Change | Access::Define => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    // A sandbox that can write the directory could replace the file by a link to another database, or by a pipe, whose opening
    // would block. An ended sandbox may have left a link.
    let refused = |error: io::Error| {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        rusqlite::Error::SqliteFailure(code, Some(error.to_string()))
    };
    trusted_file::look_at(path).map_err(|error| refused(error.into()))?;
    // The file is not opened here: closing it would release the locks of this process's other connections.
    if !path.metadata().map_err(refused)?.is_file() {
        return Err(refused(io::Error::other("not a regular file")));
    }
    // Paths are not read as URIs. A missing database is not created.
    let careful = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, way | careful)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_VALUE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    if access == Access::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(connection)
}

fn guard(connection: &Connection, access: Access) -> Result<(), Failure> {
    let hook = move |context: AuthContext<'_>| authorization(access, &context.action);
    connection.authorizer(Some(hook)).map_err(|error| failure(&error))
}

fn unguard(connection: &Connection) -> Result<(), Failure> {
    let none = None::<fn(AuthContext<'_>) -> Authorization>;
    connection.authorizer(none).map_err(|error| failure(&error))
}

fn read(
    connection: &Connection,
    sql: &str,
    parameters: &[Parameter],
    bounds: Bounds,
) -> Result<Rows, Failure> {
    let failed = |error: rusqlite::Error| failure(&error);
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    super::statement::named_once(&columns)?;
    let mut found = statement.query(params_from_iter(parameters)).map_err(failed)?;
    let mut rows = Rows::new(columns.clone(), bounds);
    while let Some(row) = found.next().map_err(failed)? {
        let (mut told, mut bytes) = (Map::new(), 0);
        for (at, column) in columns.iter().enumerate() {
            let value = row.get_ref(at).map_err(failed)?;
            bytes += column.len() + size(value);
            // Values of a too large row are not copied.
            if bytes <= super::bounds::LARGEST_ROW {
                told.insert(column.clone(), self::told(value));
            }
        }
        if !rows.take(Some(told), bytes) {
            break;
        }
    }
    Ok(rows)
}

/// Returns the approximate size of a value as JSON, in bytes.
fn size(value: ValueRef<'_>) -> usize {
    const PLAIN: usize = 8;
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => PLAIN,
        ValueRef::Text(text) => PLAIN + text.len(),
        ValueRef::Blob(bytes) => 3 * PLAIN + bytes.len().div_ceil(3) * 4,
    }
}

fn told(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

fn unreachable(error: &rusqlite::Error) -> Failure {
    tracing::warn!(%error, "a tool can't open a database");
    Failure::new(DomainCode::Unavailable, "the database can't be opened")
}

/// Returns the failure for an error of a statement.
fn failure(error: &rusqlite::Error) -> Failure {
    let said = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            Failure::new(DomainCode::LimitExceeded, "the database took longer than 20 s")
        }
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            Failure::new(DomainCode::PermissionDenied, said)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Failure::new(DomainCode::Unavailable, said)
        }
        Some(ErrorCode::ConstraintViolation) => Failure::new(DomainCode::Conflict, said),
        _ => Failure::argument(said),
    }
}

// === impl CancelOnDrop ===

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// === impl Parameter ===

impl ToSql for Parameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match self {
            Self::Null(()) => Bound::Null,
            Self::Boolean(value) => Bound::Integer((*value).into()),
            Self::Integer(number) => Bound::Integer(*number),
            Self::Number(number) => Bound::Real(*number),
            Self::Text(text) => Bound::Text(text.clone()),
        }))
    }
}
