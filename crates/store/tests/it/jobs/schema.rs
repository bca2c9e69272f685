//! The schema: what migrations make of an empty database, the same on each engine, and that they may be carried out again.

use super::on_both_engines;
use super::world::{World, assignment};
use belljar_store::database::Location;
use sqlx::{Connection, Row};

/// Each column of each table as `table.column type`, with `?` for one that may be null, and each index that we named.
async fn schema(world: &World) -> String {
    let lines: Vec<String> = match (&world.location, &world.postgres) {
        (Location::File(path), _) => {
            let url = format!("sqlite:{}", path.display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            let rows = sqlx::query(OF_SQLITE).fetch_all(&mut connection).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
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
    WHERE t.type = 'table' AND t.name NOT GLOB '_sqlx*' AND t.name NOT GLOB 'sqlite*'
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

on_both_engines! {
    async fn the_schema_is_this_one(world: World) {
        insta::assert_snapshot!("schema", schema(&world).await);
    }

    async fn opening_a_database_again_changes_nothing_in_it(world: World) {
        let wanted = assignment();
        let accepted = world.accepted(&wanted).await;
        let before = schema(&world).await;
        for _ in 0..3 {
            assert_eq!(world.elsewhere().await.find(&wanted.job_id).await.unwrap(), Some(accepted.clone()));
        }
        world.database.close().await;
        assert_eq!(world.elsewhere().await.find(&wanted.job_id).await.unwrap(), Some(accepted));
        assert_eq!(schema(&world).await, before);
    }
}
