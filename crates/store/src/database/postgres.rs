//! PostgreSQL: a server of ours, over its own protocol, with TLS where the URL asks for it.

use super::{DatabaseError, Row, Value};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection, SqlSafeStr};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections to a server.
#[derive(Debug, Clone)]
pub(super) struct Postgres {
    pool: PgPool,
    line: Arc<ServerHealth>,
}

/// A transaction.
#[derive(Debug)]
pub(crate) struct PostgresTransaction {
    transaction: sqlx::Transaction<'static, sqlx::Postgres>,
    line: Arc<ServerHealth>,
}

/// Tracks whether the server responds. While it doesn't, one caller probes it now and then, and all others fail at once
/// instead of waiting in vain.
#[derive(Debug, Default)]
struct ServerHealth {
    /// Time of the next probe, if the server doesn't respond.
    silent_until: Mutex<Option<Instant>>,
}

/// Migrations of the schema: number, name and SQL. Each may be executed twice.
const STEPS: &[(i64, &str, &str)] = &[
    (1, "jobs", include_str!("../../migrations/postgres/0001_jobs.sql")),
    (2, "memory", include_str!("../../migrations/postgres/0002_memory.sql")),
    (3, "task artifacts", include_str!("../../migrations/postgres/0003_task_artifacts.sql")),
    (4, "agent tokens", include_str!("../../migrations/postgres/0004_agent_tokens.sql")),
    (5, "skills", include_str!("../../migrations/postgres/0005_skills.sql")),
    (6, "preferences", include_str!("../../migrations/postgres/0006_preferences.sql")),
    (7, "settings", include_str!("../../migrations/postgres/0007_settings.sql")),
    (8, "approvals", include_str!("../../migrations/postgres/0008_approvals.sql")),
    (9, "trust", include_str!("../../migrations/postgres/0009_trust.sql")),
    (10, "agents of tokens", include_str!("../../migrations/postgres/0010_token_agents.sql")),
    (11, "approval scopes", include_str!("../../migrations/postgres/0011_approval_scopes.sql")),
    (12, "execution grants", include_str!("../../migrations/postgres/0012_execution_grants.sql")),
    (13, "instance abilities", include_str!("../../migrations/postgres/0013_instance_abilities.sql")),
    (14, "projects of jobs", include_str!("../../migrations/postgres/0014_job_projects.sql")),
    (15, "projects of tasks", include_str!("../../migrations/postgres/0015_task_projects.sql")),
];

const MOST_CONNECTIONS: u32 = 10;

/// Session settings. A commit is on disk when the server acknowledges it, whatever the server's default is. An idle or
/// lost client can't hold locks for long. Statements are planned once, because each uses an index that fits all its
/// arguments.
const SESSION: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("synchronous_commit", "on"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("lock_timeout", "3s"),
    ("statement_timeout", "5s"),
    ("tcp_user_timeout", "20s"),
];

/// Timeout after which the server counts as unresponsive.
const SILENCE: Duration = Duration::from_secs(6);

/// Timeout for a probe of a server that didn't respond before, and the interval between probes.
const STILL_SILENT: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_secs(1);

/// Idle time up to which a pooled connection is used without a ping.
const FRESH: Duration = Duration::from_millis(100);

/// Timeout for acquiring a connection from the pool.
const PATIENCE: Duration = Duration::from_secs(5);

// === impl Postgres ===

impl Postgres {
    pub(super) async fn open(url: &str) -> Result<Self, DatabaseError> {
        let failed = |error| DatabaseError::of("open the database", error);
        let options: PgConnectOptions = url.parse().map_err(failed)?;
        let options = options.application_name("belljar").options(SESSION);
        let pool = PgPoolOptions::new().max_connections(MOST_CONNECTIONS).acquire_timeout(PATIENCE);
        // A ping for each acquired connection would cost one more round trip.
        let pool = pool.test_before_acquire(false).before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            })
        });
        let pool = pool.connect_with(options).await.map_err(failed)?;
        belljar_failpoint::reached("migrate.before");
        let migrated = migrator().run(&pool).await;
        migrated
            .map_err(|error| DatabaseError::of("bring the database up to date", sqlx::Error::from(error)))?;
        belljar_failpoint::reached("migrate.after");
        Ok(Self { pool, line: Arc::default() })
    }

    pub(super) async fn begin(&self) -> Result<PostgresTransaction, DatabaseError> {
        let transaction = self.line.hear(self.pool.begin()).await;
        let transaction = transaction.map_err(|error| DatabaseError::of("begin a transaction", error))?;
        Ok(PostgresTransaction { transaction, line: Arc::clone(&self.line) })
    }

    pub(super) async fn fetch(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let rows = self.line.hear(bound(sql, values).fetch_all(&self.pool)).await;
        let rows = rows.map_err(|error| DatabaseError::of("read the database", error))?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    /// Executes a statement that is a transaction of its own; returns its rows.
    pub(super) async fn write(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let mut connection = self.connection().await?;
        let rows = self.line.hear(bound(sql, values).fetch_all(&mut *connection)).await;
        let rows = rows.map_err(|error| DatabaseError::of("write to the database", error).in_doubt())?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    /// Executes a statement that is a transaction of its own; returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &'static str, values: Vec<Value>) -> Result<u64, DatabaseError> {
        let mut connection = self.connection().await?;
        let done = self.line.hear(bound(sql, values).execute(&mut *connection)).await;
        let done = done.map_err(|error| DatabaseError::of("write to the database", error).in_doubt())?;
        Ok(done.rows_affected())
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    /// Acquires a connection. If this fails, nothing was written.
    async fn connection(&self) -> Result<PoolConnection<sqlx::Postgres>, DatabaseError> {
        let connection = self.line.hear(self.pool.acquire()).await;
        connection.map_err(|error| DatabaseError::of("connect to the database", error))
    }
}

// === impl PostgresTransaction ===

impl PostgresTransaction {
    pub(super) async fn fetch(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        let rows = self.line.hear(bound(sql, values).fetch_all(&mut *self.transaction)).await;
        let rows = rows.map_err(|error| DatabaseError::of("write to the database", error))?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    pub(super) async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError> {
        let done = self.line.hear(bound(sql, values).execute(&mut *self.transaction)).await;
        Ok(done.map_err(|error| DatabaseError::of("write to the database", error))?.rows_affected())
    }

    pub(super) async fn commit(self) -> Result<(), DatabaseError> {
        let done = self.line.hear(self.transaction.commit()).await;
        done.map_err(|error| DatabaseError::of("commit to the database", error).in_doubt())
    }
}

// === impl ServerHealth ===

impl ServerHealth {
    /// Returns the server's answer, or an error if the server doesn't respond in time.
    async fn hear<T>(&self, asked: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
        let silent = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        let patience = self.patience().ok_or_else(silent)?;
        let heard = tokio::time::timeout(patience, asked).await;
        // A timeout of the pool also means that the server didn't respond.
        let is_silent = matches!(heard, Err(_) | Ok(Err(sqlx::Error::PoolTimedOut)));
        *self.silent_until() = is_silent.then(|| Instant::now() + BETWEEN);
        heard.unwrap_or_else(|_| Err(silent()))
    }

    /// Returns the timeout for a request that starts now; `None` if the server is known not to respond.
    fn patience(&self) -> Option<Duration> {
        let now = Instant::now();
        match &mut *self.silent_until() {
            None => Some(SILENCE),
            Some(until) if *until > now => None,
            // No other caller probes meanwhile.
            Some(until) => {
                *until = now + STILL_SILENT + BETWEEN;
                Some(STILL_SILENT)
            }
        }
    }

    fn silent_until(&self) -> MutexGuard<'_, Option<Instant>> {
        // No update can be left half done, so a poisoned lock is harmless.
        self.silent_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn migrator() -> Migrator {
    let migration = |&(version, name, sql): &(i64, &'static str, &'static str)| {
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations(STEPS.iter().map(migration).collect())
}

fn bound(sql: &'static str, values: Vec<Value>) -> Query<'static, sqlx::Postgres, PgArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
    })
}
