//! Tests of databases on a real server: they can be read and not be changed.

use crate::configured::{Case, Rig};
use belljar_contract::tool::DomainCode;
use belljar_testkit::postgres::Postgres;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    (
        "postgres_read_tool_cannot_write_with_a_writable_role",
        postgres_read_tool_cannot_write_with_a_writable_role,
    ),
    ("postgres_rows_of_any_type_are_returned", postgres_rows_of_any_type_are_returned),
    (
        "postgres_change_is_atomic_and_migration_applied_once",
        postgres_change_is_atomic_and_migration_applied_once,
    ),
    ("postgres_role_with_server_file_access_is_rejected", postgres_role_with_server_file_access_is_rejected),
];

/// A database with a table of one row, a sequence, and a role that owns them.
struct TestDatabase {
    server: Postgres,
    url: String,
    role: String,
}

/// Statements, each of which would change something if it were allowed.
const ATTEMPTS: [&str; 16] = [
    "INSERT INTO kept VALUES (2)",
    "SELECT 1; INSERT INTO kept VALUES (2)",
    "SELECT 1; COMMIT; INSERT INTO kept VALUES (2)",
    "COMMIT",
    ";COMMIT",
    "WITH put AS (INSERT INTO kept VALUES (2) RETURNING 1) SELECT * FROM put",
    "SELECT 1) AS q) AS r; COMMIT; INSERT INTO kept VALUES (2); --",
    "SELECT 1) AS q LIMIT 1) AS r; INSERT INTO kept VALUES (2) --",
    "SELECT put(2)",
    "SELECT set_config('transaction_read_only', 'off', true), put(2)",
    "SELECT set_config('transaction_read_only', 'off', false) UNION ALL SELECT put(2)::text",
    "SELECT open_and_put(2)",
    "SELECT nextval('numbers')",
    "SELECT setval('numbers', 7)",
    "SELECT * FROM kept FOR UPDATE",
    "DO $$ BEGIN COMMIT; INSERT INTO kept VALUES (2); END $$",
];

const SCHEMA: &str = "
    CREATE TABLE kept (number int PRIMARY KEY); INSERT INTO kept VALUES (1); CREATE SEQUENCE numbers;
    CREATE FUNCTION put(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO kept VALUES (n); RETURN n; END $$;
    CREATE FUNCTION open_and_put(n int) RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN SET TRANSACTION READ WRITE; INSERT INTO kept VALUES (n); RETURN n; END $$;";

// === impl TestDatabase ===

impl TestDatabase {
    fn new() -> Result<Self, String> {
        let server = Postgres::start()?;
        let url = server.database()?;
        let name = url.rsplit('/').next().unwrap();
        let role = format!("role_of_{name}");
        server.ask(&url, &format!("CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA public TO {role}"))?;
        let house = Self { server, role, url };
        house.as_role(SCHEMA)?;
        Ok(house)
    }

    /// Runs SQL directly as the role.
    fn as_role(&self, sql: &str) -> Result<String, String> {
        self.server.ask(&self.url.replacen("postgres@", &format!("{}@", self.role), 1), sql)
    }

    fn count(&self) -> String {
        self.server.ask(&self.url, "SELECT count(*), (SELECT is_called FROM numbers) FROM kept").unwrap()
    }

    fn rig(&self, more: &str) -> Rig {
        self.rig_as(&self.role, more)
    }

    fn rig_as(&self, role: &str, more: &str) -> Rig {
        let (before, database) = self.url.rsplit_once('/').unwrap();
        let sockets = before.rsplit('@').next().unwrap().replace("%2F", "/");
        Rig::new(&format!(
            "databases:\n  postgres:\n    - {{name: house, host: {sockets}, database: {database}, user: {role}{more}}}\n"
        ))
    }
}

fn query(sql: &str) -> Value {
    json!({ "database": "house", "query": sql })
}

fn postgres_read_tool_cannot_write_with_a_writable_role() -> Result<(), String> {
    let house = TestDatabase::new()?;
    let rig = house.rig("");
    assert_eq!(rig.names(), ["schema_inspect", "sql_query"]);
    for attempt in ATTEMPTS {
        let answer = rig.call("sql_query", &query(attempt));
        assert!(answer.is_err(), "{attempt}: {answer:?}");
    }
    // Some servers allow this in a read-only transaction; it is never committed.
    let _ = rig.call("sql_query", &query("SELECT lo_create(4711)"));
    let objects = || house.as_role("SELECT count(*) FROM pg_largeobject_metadata").unwrap();
    assert_eq!((house.count().trim(), objects().trim()), ("1|f", "0"));
    assert_eq!(
        rig.call("sql_query", &query("SELECT number FROM kept")).unwrap().data["rows"],
        json!([{ "number": 1 }])
    );
    // Control: the same role can do all of this directly.
    house.as_role(
        "INSERT INTO kept VALUES (2); SELECT put(3); SELECT nextval('numbers'); SELECT lo_create(4711)",
    )?;
    assert_eq!((house.count().trim(), objects().trim()), ("3|t", "1"));
    let insert = json!({ "database": "house", "statement": "INSERT INTO kept VALUES ($1)", "params": [4] });
    assert_eq!(house.rig(", writable: true").call("sql_execute", &insert).unwrap().data["rows_affected"], 1);
    assert_eq!(house.count().trim(), "4|t");
    Ok(())
}

fn postgres_rows_of_any_type_are_returned() -> Result<(), String> {
    let house = TestDatabase::new()?;
    let rig = house.rig("");
    let sql = "SELECT $1::date AS day, $2 + 1 AS more, $3 AS said, $4 AS truth, 1.5::numeric AS figure, ARRAY[1, 2] AS list, \
        '{\"a\": 1}'::jsonb AS object, $5::int AS nothing";
    let params = json!(["2026-01-31", 41, "it's; --", true, null]);
    let asked = json!({ "database": "house", "query": sql, "params": params });
    let rows = &rig.call("sql_query", &asked).unwrap().data["rows"];
    let row = json!({ "day": "2026-01-31", "more": 42, "said": "it's; --", "truth": true, "figure": 1.5,
        "list": [1, 2], "object": { "a": 1 }, "nothing": null });
    assert_eq!(*rows, json!([row]));
    let told = |sql: &str| rig.call("sql_query", &query(sql));
    let many = told("SELECT * FROM generate_series(1, 100000) AS n ORDER BY n DESC").unwrap().data;
    assert_eq!(
        (&many["row_count"], &many["truncated"], &many["rows"][0]["n"]),
        (&json!(100), &json!(true), &json!(100_000))
    );
    let large = told("SELECT repeat('x', 100000000) AS x UNION ALL SELECT 'y'").unwrap().data;
    assert_eq!((&large["rows"], &large["truncated"]), (&json!([{ "x": "y" }]), &json!(true)));
    let twice = told("SELECT 1 AS a, 2 AS a").unwrap_err();
    assert!(twice.message.contains("\"a\""), "{twice}");
    assert_eq!(told("SELECT nothing FROM nowhere").unwrap_err().code, DomainCode::InvalidArgument);
    let schema = rig.call("schema_inspect", &json!({ "database": "house" })).unwrap().data;
    let column = json!({ "schema": "public", "table": "kept", "kind": "base table", "column": "number", "type": "integer", "nullable": false });
    assert_eq!(schema["rows"], json!([column]));
    Ok(())
}

fn postgres_change_is_atomic_and_migration_applied_once() -> Result<(), String> {
    let house = TestDatabase::new()?;
    let rig = house.rig(", writable: true");
    let execute = |sql: &str| rig.call("sql_execute", &json!({ "database": "house", "statement": sql }));
    assert_eq!(execute("INSERT INTO kept VALUES (2), (1)").unwrap_err().code, DomainCode::Conflict);
    assert!(execute("INSERT INTO kept VALUES (2); INSERT INTO kept VALUES (3)").is_err());
    assert!(execute("INSERT INTO kept VALUES (2) RETURNING 1").is_err());
    assert_eq!(house.count().trim(), "1|f");
    let migrate = |name: &str, statements: &[&str]| {
        let reason = json!({ "database": "house", "name": name, "statements": statements, "confirm": true, "reason": "a test" });
        rig.call("sql_migrate", &reason).map(|success| success.data["applied"].clone())
    };
    let broken = ["CREATE TABLE more (a int)", "INSERT INTO kept VALUES (1)"];
    assert_eq!(migrate("one", &broken).unwrap_err().code, DomainCode::Conflict);
    assert!(migrate("one", &["CREATE TABLE more (a int)", "COMMIT"]).is_err());
    assert!(house.as_role("SELECT * FROM more").is_err());
    let good = ["CREATE TABLE more (a int)", "INSERT INTO more VALUES (1)"];
    assert_eq!(migrate("one", &good), Ok(json!(true)));
    assert_eq!(migrate("one", &good), Ok(json!(false)));
    assert_eq!(migrate("one", &good[..1]).unwrap_err().code, DomainCode::Conflict);
    assert_eq!(house.as_role("SELECT count(*) FROM more")?.trim(), "1");
    Ok(())
}

fn postgres_role_with_server_file_access_is_rejected() -> Result<(), String> {
    let house = TestDatabase::new()?;
    let one = |rig: &Rig| rig.call("sql_query", &query("SELECT 1 AS one"));
    let refused = one(&house.rig_as("postgres", "")).unwrap_err();
    assert_eq!(refused.code, DomainCode::PermissionDenied);
    assert!(one(&house.rig("")).is_ok());
    house.server.ask(&house.url, &format!("GRANT pg_write_server_files TO {}", house.role))?;
    assert_eq!(one(&house.rig("")).unwrap_err().code, DomainCode::PermissionDenied);
    Ok(())
}
