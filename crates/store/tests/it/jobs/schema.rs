//! The schema: migrations of an empty database have the same result on each engine, and may be executed twice.

use super::on_both_engines;
use super::world::{StoreFixture, assignment};
use belljar_store::database::{Database, FailureKind, Location};

/// Each column of each table as `table.column type`, with `?` for one that may be null, and each index that we named.
fn schema(world: &StoreFixture) -> String {
    let lines: Vec<String> = match (&world.location, &world.postgres) {
        (Location::File(path), _) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            let mut statement = connection.prepare(OF_SQLITE).unwrap();
            let rows = statement.query_map((), |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        }
        (Location::Server(url), Some((server, _))) => {
            server.ask(url, OF_POSTGRES).unwrap().lines().map(str::to_owned).collect()
        }
        (Location::Server(_), None) => panic!("a server without a server"),
    };
    lines.join("\n")
}

const OF_SQLITE: &str = "SELECT line FROM (
    SELECT t.name || '.' || c.name || ' ' || lower(replace(c.type, 'INTEGER', 'BIGINT'))
        || CASE WHEN c.\"notnull\" OR c.pk THEN '' ELSE '?' END AS line
    FROM sqlite_master t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite*'
    UNION ALL
    SELECT 'index ' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
) ORDER BY line";

const OF_POSTGRES: &str = "SELECT line FROM (
    SELECT table_name || '.' || column_name || ' ' || data_type
        || CASE WHEN is_nullable = 'NO' THEN '' ELSE '?' END AS line
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '\\_sqlx%'
    UNION ALL
    SELECT 'index ' || indexname FROM pg_indexes
    WHERE schemaname = 'public' AND indexname NOT LIKE '%\\_key' AND indexname NOT LIKE '%\\_pkey'
) AS lines ORDER BY line COLLATE \"C\"";

/// The tables that came after those of jobs.
const SINCE_JOBS: [&str; 9] = [
    "memory",
    "task_artifacts",
    "agent_token_agents",
    "agent_tokens",
    "skills",
    "preferences",
    "settings",
    "allowed_images",
    "task_projects",
];

/// The columns of jobs that came later.
const COLUMNS_SINCE_JOBS: [&str; 2] = ["project_id", "grace_ms"];

on_both_engines! {
    async fn the_schema_is_this_one(world: StoreFixture) {
        insta::assert_snapshot!("schema", schema(&world));
    }

    async fn opening_a_database_again_changes_nothing_in_it(world: StoreFixture) {
        let wanted = assignment();
        let accepted = world.accepted(&wanted).await;
        let before = schema(&world);
        for _ in 0..3 {
            assert_eq!(world.elsewhere().await.find(&wanted.job_id).await.unwrap(), Some(accepted.clone()));
        }
        world.database.close().await;
        assert_eq!(world.elsewhere().await.find(&wanted.job_id).await.unwrap(), Some(accepted));
        assert_eq!(schema(&world), before);
    }

    async fn a_database_of_before_is_brought_up_to_date_with_what_is_in_it(world: StoreFixture) {
        let wanted = assignment();
        let accepted = world.accepted(&wanted).await;
        let before = schema(&world);
        world.database.close().await;
        let tables = SINCE_JOBS.iter().map(|table| format!("DROP TABLE {table};"));
        let columns = COLUMNS_SINCE_JOBS.iter().map(|column| format!("ALTER TABLE jobs DROP COLUMN {column};"));
        let dropped: String = tables.chain(columns).collect();
        match (&world.location, &world.postgres) {
            (Location::File(path), _) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch(&dropped).unwrap();
                connection.pragma_update(None, "user_version", 1).unwrap();
            }
            (Location::Server(url), Some((server, _))) => {
                server.ask(url, &format!("{dropped} DELETE FROM _sqlx_migrations WHERE version > 1")).unwrap();
            }
            (Location::Server(_), None) => panic!("a server without a server"),
        }
        assert_ne!(schema(&world), before);
        assert_eq!(world.elsewhere().await.find(&wanted.job_id).await.unwrap(), Some(accepted));
        assert_eq!(schema(&world), before);
    }

    async fn a_database_that_somebody_newer_has_changed_is_not_opened(world: StoreFixture) {
        world.database.close().await;
        match (&world.location, &world.postgres) {
            (Location::File(path), _) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
                connection.pragma_update(None, "user_version", version + 1).unwrap();
            }
            (Location::Server(url), Some((server, _))) => {
                server.ask(url, "UPDATE _sqlx_migrations SET version = version + 1 \
                    WHERE version = (SELECT max(version) FROM _sqlx_migrations)").unwrap();
            }
            (Location::Server(_), None) => panic!("a server without a server"),
        }
        let refused = Database::open(&world.location).await.unwrap_err();
        assert_eq!((refused.doing, refused.kind), ("bring the database up to date", FailureKind::Refused));
    }
}
