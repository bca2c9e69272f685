//! Tests of databases in files: they can be read and not be changed.

use crate::configured::{Case, Rig};
use belljar_contract::tool::DomainCode;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) const CASES: &[Case] = &[
    ("sqlite_read_tool_cannot_write_or_open_other_files", sqlite_read_tool_cannot_write_or_open_other_files),
    ("sqlite_query_returns_rows_by_column", sqlite_query_returns_rows_by_column),
    ("sqlite_write_tool_cannot_open_other_files", sqlite_write_tool_cannot_open_other_files),
    ("sqlite_path_that_is_a_symlink_or_pipe_is_rejected", sqlite_path_that_is_a_symlink_or_pipe_is_rejected),
    ("missing_sqlite_file_is_reported_at_setup", missing_sqlite_file_is_reported_at_setup),
];

/// A folder with a database, and another one that must not be accessible.
struct DatabaseFolder {
    folder: TempDir,
}

// === impl DatabaseFolder ===

impl DatabaseFolder {
    fn new() -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap() };
        let schema =
            "CREATE TABLE kept (number INTEGER PRIMARY KEY, said TEXT); INSERT INTO kept VALUES (1, 'one')";
        house.open("house.db").execute_batch(schema).unwrap();
        house
            .open("other.db")
            .execute_batch("CREATE TABLE secret (word TEXT); INSERT INTO secret VALUES ('x')")
            .unwrap();
        house
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str) -> Connection {
        Connection::open(self.path(name)).unwrap()
    }

    fn rig(&self, more: &str) -> Rig {
        rig(&self.path("house.db"), more)
    }

    /// All files in the folder with their content.
    fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Statements, each of which would change something or reach the other file if it were allowed.
    fn attempts(&self) -> Vec<String> {
        let other = self.path("other.db");
        let (other, new) = (other.display(), self.path("new.db"));
        let new = new.display();
        [
            "INSERT INTO kept VALUES (2, 'two')",
            "SELECT 1; INSERT INTO kept VALUES (2, 'two')",
            "WITH x AS (SELECT 2) INSERT INTO kept SELECT *, 'two' FROM x",
            "WITH x AS (SELECT 1) DELETE FROM kept",
            "PRAGMA query_only = 0",
            "PRAGMA writable_schema = 1",
            "SELECT load_extension('/lib/x.so')",
            "SELECT * FROM pragma_database_list",
            "BEGIN",
            "CREATE TEMP TABLE x (y)",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([
            format!("ATTACH '{other}' AS other"),
            format!("ATTACH 'file:{other}?mode=rw' AS other"),
            format!("SELECT * FROM '{other}'.secret"),
            format!("VACUUM INTO '{new}'"),
            format!("SELECT writefile('{new}', 'x')"),
            format!("SELECT readfile('{other}')"),
        ])
        .collect()
    }
}

fn rig(path: &Path, more: &str) -> Rig {
    Rig::new(&format!("databases: {{sqlite: [{{name: house, path: {}{more}}}]}}", path.display()))
}

fn query(sql: &str) -> Value {
    json!({ "database": "house", "query": sql })
}

fn sqlite_read_tool_cannot_write_or_open_other_files() -> Result<(), String> {
    let house = DatabaseFolder::new();
    let (rig, before) = (house.rig(""), house.bytes());
    for attempt in house.attempts() {
        let answer = rig.call("sql_query", &query(&attempt));
        assert!(answer.is_err(), "{attempt}: {answer:?}");
    }
    assert!(house.bytes() == before, "something has changed");
    let read = rig.call("sql_query", &query("SELECT * FROM kept")).unwrap().data;
    assert_eq!(read["rows"], json!([{ "number": 1, "said": "one" }]));
    // Control: with a plain connection all of these work.
    let open = house.open("house.db");
    let other = house.path("other.db");
    open.execute_batch(&format!(
        "ATTACH '{}' AS other; INSERT INTO kept SELECT 2, word FROM other.secret",
        other.display()
    ))
    .unwrap();
    let read = rig.call("sql_query", &query("SELECT said FROM kept WHERE number = 2")).unwrap().data;
    assert_eq!(read["rows"], json!([{ "said": "x" }]));
    Ok(())
}

fn sqlite_path_that_is_a_symlink_or_pipe_is_rejected() -> Result<(), String> {
    let house = DatabaseFolder::new();
    let rig = house.rig("");
    let ask = || rig.call("sql_query", &query("SELECT count(*) AS n FROM sqlite_schema"));
    // Control.
    ask().unwrap();
    let path = house.path("house.db");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(house.path("other.db"), &path).unwrap();
    assert_eq!(ask().unwrap_err().code, DomainCode::Unavailable);
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    assert_eq!(ask().unwrap_err().code, DomainCode::Unavailable);
    Ok(())
}

fn sqlite_query_returns_rows_by_column() -> Result<(), String> {
    let house = DatabaseFolder::new();
    let rig = house.rig("");
    let sql = "SELECT ?1 AS number, ?2 AS said, ?3 AS truth, ?4 AS missing, 1.5 AS figure, x'0102' AS bytes";
    let asked = json!({ "database": "house", "query": sql, "params": [7, "it's; --", true, null] });
    let row = json!({ "number": 7, "said": "it's; --", "truth": 1, "missing": null, "figure": 1.5, "bytes": { "base64": "AQI=" } });
    assert_eq!(rig.call("sql_query", &asked).unwrap().data["rows"], json!([row]));
    let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n";
    let many =
        rig.call("sql_query", &json!({ "database": "house", "query": count, "max_rows": 3 })).unwrap().data;
    assert_eq!((&many["row_count"], &many["truncated"]), (&json!(3), &json!(true)));
    let schema = rig.call("schema_inspect", &json!({ "database": "house", "table": "kept" })).unwrap().data;
    let column = json!({ "table": "kept", "kind": "table", "column": "number", "type": "INTEGER", "nullable": 1, "is_key": 1 });
    assert_eq!((&schema["rows"][0], &schema["row_count"]), (&column, &json!(2)));
    let listed = rig.call("schema_inspect", &json!({})).unwrap().data;
    assert_eq!(listed, json!({ "databases": [{ "name": "house", "kind": "sqlite", "writable": false }] }));
    assert_eq!(
        rig.call("sql_query", &json!({ "database": "unknown", "query": "SELECT 1" })).unwrap_err().code,
        DomainCode::NotFound
    );
    assert!(rig.call("sql_query", &query("SELECT 1 AS a, 2 AS a")).unwrap_err().message.contains("\"a\""));
    assert_eq!(
        rig.call("sql_query", &query("SELECT nothing")).unwrap_err().code,
        DomainCode::InvalidArgument
    );
    Ok(())
}

fn sqlite_write_tool_cannot_open_other_files() -> Result<(), String> {
    let house = DatabaseFolder::new();
    let rig = house.rig(", writable: true");
    assert_eq!(rig.names(), ["schema_inspect", "sql_execute", "sql_migrate", "sql_query"]);
    let execute = |sql: &str| rig.call("sql_execute", &json!({ "database": "house", "statement": sql }));
    assert_eq!(execute("INSERT INTO kept VALUES (2, 'two'), (3, 'three')").unwrap().data["rows_affected"], 2);
    assert!(execute("INSERT INTO kept VALUES (4, 'a'); INSERT INTO kept VALUES (5, 'b')").is_err());
    assert_eq!(
        execute("INSERT INTO kept VALUES (9, 'nine'), (1, 'again')").unwrap_err().code,
        DomainCode::Conflict
    );
    let migrate = |name: &str, statements: &[String]| {
        let asked = json!({ "database": "house", "name": name, "statements": statements, "confirm": true, "reason": "a test" });
        rig.call("sql_migrate", &asked).map(|success| success.data["applied"].clone())
    };
    let good = [
        "CREATE TABLE more (a INTEGER)",
        "CREATE INDEX of_more ON more (a)",
        "ALTER TABLE more ADD COLUMN b",
    ]
    .map(str::to_owned);
    for attempt in house.attempts().split_off(4) {
        let answer = migrate("bad", &[good[0].clone(), attempt.clone()]);
        assert!(answer.is_err(), "{attempt}");
    }
    assert_eq!(migrate("one", &good), Ok(json!(true)));
    assert_eq!(migrate("one", &good), Ok(json!(false)));
    assert_eq!(migrate("one", &good[..1]).unwrap_err().code, DomainCode::Conflict);
    assert!(!house.path("new.db").exists());
    Ok(())
}

fn missing_sqlite_file_is_reported_at_setup() -> Result<(), String> {
    let house = DatabaseFolder::new();
    assert!(house.rig("").unusable.is_empty());
    let path = house.path("later.db");
    let rig = rig(&path, ", writable: true");
    assert_eq!(rig.unusable, ["the database house can't be used"]);
    assert_eq!(rig.call("sql_query", &query("SELECT 1 AS one")).unwrap_err().code, DomainCode::Unavailable);
    assert!(!path.exists(), "nothing is made that is not there");
    house.open("later.db").execute_batch("CREATE TABLE a (b)").unwrap();
    assert!(rig.call("sql_query", &query("SELECT 1 AS one")).is_ok());
    Ok(())
}
