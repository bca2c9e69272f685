//! PostgreSQL: a configured server, with one connection per call.
//!
//! A reading statement is put inside an outer query, where no statement that changes rows is allowed, in a read-only transaction
//! that can't be made writable any more. Statements use the extended protocol, which accepts one at a time. The server converts
//! rows to JSON, and truncates them. Roles that can access the server's files or programs are refused.

use super::bounds::{Bounds, LARGEST_ROW, Rows};
use super::sqlite::Migration;
use super::{PATIENCE, Parameter, migrate, statement};
use crate::answer::Failure;
use crate::builtin::configured::config::PostgresConfig;
use belljar_contract::tool::DomainCode;
use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, PgSslMode, PgTypeInfo};
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Column, Connection, Executor, Row, SqlSafeStr, Statement, Type};
use std::time::Duration;
use tokio::time::timeout;

/// A value without a type: the server infers it from the context.
struct UntypedValue;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);

const READ_ONLY: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const READ_WRITE: &str = "BEGIN READ WRITE";

/// It is also the first query of a transaction: after it, a read-only transaction can't be made writable.
const REACHES_THE_SERVER: &str = "SELECT pg_has_role(current_user, 'pg_execute_server_program', 'MEMBER') \
    OR pg_has_role(current_user, 'pg_read_server_files', 'MEMBER') OR pg_has_role(current_user, 'pg_write_server_files', 'MEMBER')";

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS belljar_migrations \
    (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";

const COLUMNS: &str = "SELECT c.table_schema AS schema, c.table_name AS \"table\", lower(t.table_type) AS kind, c.column_name AS \"column\", \
    c.data_type AS type, c.is_nullable = 'YES' AS nullable \
    FROM information_schema.columns AS c JOIN information_schema.tables AS t USING (table_catalog, table_schema, table_name) \
    WHERE c.table_schema NOT IN ('pg_catalog', 'information_schema') AND ($1::text IS NULL OR c.table_name = $1::text) \
    ORDER BY c.table_schema, c.table_name, c.ordinal_position";

/// Oid of the type `unknown`, which the server infers.
const UNKNOWN_OID: u32 = 705;

/// Reads rows.
pub(super) async fn query(
    server: &PostgresConfig,
    sql: &str,
    parameters: &[Parameter],
    bounds: Bounds,
) -> Result<Rows, Failure> {
    within(async {
        let mut connection = begun(server, READ_ONLY).await?;
        let rows = read(&mut connection, sql, parameters, bounds).await?;
        // There is nothing to commit, so the connection is closed without an orderly end.
        drop(connection);
        Ok(rows)
    })
    .await
}

/// Returns the columns of tables.
pub(super) async fn look(server: &PostgresConfig, table: Option<String>) -> Result<Rows, Failure> {
    let table = table.map_or(Parameter::Null(()), Parameter::Text);
    query(server, COLUMNS, &[table], Bounds::of(Some(usize::MAX))).await
}

/// Changes rows; returns their number.
pub(super) async fn execute(
    server: &PostgresConfig,
    sql: &str,
    parameters: &[Parameter],
) -> Result<u64, Failure> {
    within(async {
        let mut connection = begun(server, READ_WRITE).await?;
        if !columns(&mut connection, sql, parameters).await?.is_empty() {
            return Err(Failure::argument("the statement returns rows: remove RETURNING, or use sql_query"));
        }
        let done =
            connection.execute(bound(sql.to_owned(), parameters)?).await.map_err(|error| failure(&error))?;
        committed(&mut connection).await?;
        Ok(done.rows_affected())
    })
    .await
}

/// Applies a migration, unless it was applied before; returns true if it was applied now.
pub(super) async fn migrate(server: &PostgresConfig, migration: &Migration) -> Result<bool, Failure> {
    let failed = |error: sqlx::Error| failure(&error);
    within(async {
        let Migration { name, sha256, statements } = migration;
        let mut connection = begun(server, READ_WRITE).await?;
        connection.execute(LEDGER).await.map_err(failed)?;
        // Serializes concurrent migrations of all clients.
        connection.execute("LOCK TABLE belljar_migrations").await.map_err(failed)?;
        let known = sqlx::query("SELECT sha256 FROM belljar_migrations WHERE name = $1").bind(name);
        if let Some(row) = known.fetch_optional(&mut connection).await.map_err(failed)? {
            let there: String = row.try_get(0).map_err(failed)?;
            return migrate::applied_before(&there, sha256);
        }
        for statement in statements {
            connection.execute(bound(statement.clone(), &[])?).await.map_err(failed)?;
        }
        let entry = sqlx::query("INSERT INTO belljar_migrations (name, sha256) VALUES ($1, $2)");
        connection.execute(entry.bind(name).bind(sha256)).await.map_err(failed)?;
        committed(&mut connection).await?;
        Ok(true)
    })
    .await
}

async fn within<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = |_| Failure::new(DomainCode::Unavailable, "the database did not respond in time");
    timeout(CONNECT + PATIENCE, work).await.map_err(late)?
}

/// Opens a connection in a transaction, with a role that can access only databases.
async fn begun(server: &PostgresConfig, begin: &'static str) -> Result<PgConnection, Failure> {
    let mut connection = connected(server).await?;
    sqlx::raw_sql(begin).execute(&mut connection).await.map_err(|error| failure(&error))?;
    let reaches: bool = sqlx::query(REACHES_THE_SERVER)
        .fetch_one(&mut connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(|error| failure(&error))?;
    if reaches {
        let said = "the configured role can access the server's files or programs and is rejected: the \
    operator must configure a role that is not a superuser";
        return Err(Failure::new(DomainCode::PermissionDenied, said));
    }
    Ok(connection)
}

async fn connected(server: &PostgresConfig) -> Result<PgConnection, Failure> {
    let password = match &server.password {
        Some(password) => Some(password.password().await.map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the password of a database is not \
    available"
            );
            Failure::new(DomainCode::Unavailable, "this host's password for the database is not available")
        })?),
        None => None,
    };
    let patience = PATIENCE.as_secs().to_string() + "s";
    let options = PgConnectOptions::new_without_pgpass()
        .port(server.port)
        .database(&server.database)
        .username(&server.user)
        // Without a password, none is taken from the environment: that one is for another database.
        .password(password.as_ref().map_or("", |password| password.as_str()))
        .application_name("belljar tools")
        .ssl_mode(if server.has_tls { PgSslMode::VerifyFull } else { PgSslMode::Disable })
        .options([("statement_timeout", patience.as_str()), ("lock_timeout", "5s")]);
    let options = match server.is_of_this_machine() {
        true => options.socket(&server.host).ssl_mode(PgSslMode::Disable),
        false => options.host(&server.host),
    };
    let options = match &server.authority {
        Some(authority) => options.ssl_root_cert(authority),
        None => options,
    };
    let unreachable = || Failure::new(DomainCode::Unavailable, "the database can't be reached");
    let connection =
        timeout(CONNECT, PgConnection::connect_with(&options)).await.map_err(|_| unreachable())?;
    connection.map_err(|error| {
        tracing::warn!(%error, "a tool can't reach a database");
        unreachable()
    })
}

async fn read(
    connection: &mut PgConnection,
    sql: &str,
    parameters: &[Parameter],
    bounds: Bounds,
) -> Result<Rows, Failure> {
    let columns = columns(connection, sql, parameters).await?;
    if columns.is_empty() {
        return Err(Failure::argument("the statement returns no rows"));
    }
    statement::named_once(&columns)?;
    let most = bounds.rows + 1;
    let sql = format!(
        "SELECT CASE WHEN octet_length(t) <= {LARGEST_ROW} THEN t END FROM (SELECT row_to_json(q)::text AS t FROM (\n{sql}\n) AS q LIMIT {most}) AS r"
    );
    let mut rows = Rows::new(columns, bounds);
    let mut found = bound(sql, parameters)?.fetch(&mut *connection);
    while let Some(row) = found.try_next().await.map_err(|error| failure(&error))? {
        let (row, bytes) = told(&row)?;
        if !rows.take(row, bytes) {
            break;
        }
    }
    Ok(rows)
}

/// Returns a row as JSON from the server; `None` if it is too large.
fn told(row: &PgRow) -> Result<(Option<serde_json::Map<String, Value>>, usize), Failure> {
    let text: Option<String> = row.try_get(0).map_err(|error| failure(&error))?;
    let Some(text) = text else { return Ok((None, 0)) };
    let row = serde_json::from_str(&text).map_err(|error| Failure::internal("read a row", &error))?;
    Ok((Some(row), text.len()))
}

/// Returns the column names of a statement, by preparing it.
async fn columns(
    connection: &mut PgConnection,
    sql: &str,
    parameters: &[Parameter],
) -> Result<Vec<String>, Failure> {
    let types: Vec<PgTypeInfo> = parameters.iter().map(Parameter::kind).collect();
    let sql = AssertSqlSafe(sql.to_owned()).into_sql_str();
    let prepared = connection.prepare_with(sql, &types).await.map_err(|error| failure(&error))?;
    Ok(prepared.columns().iter().map(|column| column.name().to_owned()).collect())
}

/// Binds a statement's parameters, for the extended protocol. The agent writes the statement; its permissions don't depend on its
/// text.
fn bound(
    sql: String,
    parameters: &[Parameter],
) -> Result<Query<'static, sqlx::Postgres, PgArguments>, Failure> {
    let mut arguments = PgArguments::default();
    for parameter in parameters {
        let added = match parameter {
            Parameter::Null(()) => arguments.add(UntypedValue),
            Parameter::Boolean(value) => arguments.add(*value),
            Parameter::Integer(number) => arguments.add(*number),
            Parameter::Number(number) => arguments.add(*number),
            Parameter::Text(text) => arguments.add(text.clone()),
        };
        added.map_err(|error| Failure::internal("bind a parameter", error.as_ref()))?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(false))
}

async fn committed(connection: &mut PgConnection) -> Result<(), Failure> {
    let done = sqlx::raw_sql("COMMIT").execute(connection).await;
    done.map(drop).map_err(|error| {
        tracing::warn!(%error, "a tool's database change may not have been committed");
        match error {
            sqlx::Error::Database(_) => failure(&error),
            _ => Failure::new(
                DomainCode::Unavailable,
                "the outcome of the change is unknown; check the current state before you try again",
            ),
        }
    })
}

fn failure(error: &sqlx::Error) -> Failure {
    let sqlx::Error::Database(said) = error else {
        tracing::warn!(%error, "a database did not respond to a tool");
        return Failure::new(DomainCode::Unavailable, "the database did not respond");
    };
    let code = said.code().unwrap_or_default();
    let class = match code.as_ref() {
        "57014" => DomainCode::LimitExceeded,
        "25006" | "42501" => DomainCode::PermissionDenied,
        code if code.starts_with("23") || code.starts_with("40") => DomainCode::Conflict,
        code if code.starts_with("53") || code.starts_with("55") || code.starts_with("57") => {
            DomainCode::Unavailable
        }
        _ => DomainCode::InvalidArgument,
    };
    Failure::new(class, format!("{} ({code})", said.message()))
}

// === impl Parameter ===

impl Parameter {
    fn kind(&self) -> PgTypeInfo {
        match self {
            Self::Null(()) => UntypedValue::type_info(),
            Self::Boolean(_) => <bool as Type<sqlx::Postgres>>::type_info(),
            Self::Integer(_) => <i64 as Type<sqlx::Postgres>>::type_info(),
            Self::Number(_) => <f64 as Type<sqlx::Postgres>>::type_info(),
            Self::Text(_) => <String as Type<sqlx::Postgres>>::type_info(),
        }
    }
}

// === impl UntypedValue ===

impl Type<sqlx::Postgres> for UntypedValue {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(sqlx::postgres::types::Oid(UNKNOWN_OID))
    }
}

impl sqlx::Encode<'_, sqlx::Postgres> for UntypedValue {
    fn encode_by_ref(
        &self,
        _: &mut sqlx::postgres::PgArgumentBuffer,
    ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
        Ok(sqlx::encode::IsNull::Yes)
    }
}
