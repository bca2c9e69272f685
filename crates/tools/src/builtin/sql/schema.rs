//! `schema_inspect`: lists databases, and the columns of one.

use super::{DatabaseLocation, Databases, postgres, sqlite};
use crate::Tool;
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::approval::CallScope;
use belljar_contract::tool::InvalidToolNameError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The database and table to inspect.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Name of the database; without it, all databases are listed.
    #[schemars(length(min = 1, max = 32))]
    database: Option<String>,
    /// Only this table of that database.
    #[schemars(length(min = 1, max = 200))]
    table: Option<String>,
}

struct SqlSchemaTool(Databases);

const DESCRIPTION: &str = "Without `database`: lists the databases with their kind and whether each is \
    `writable`. With it: lists the columns of its tables and views, or of one `table`, one row \
    each; `truncated` is true if there are more.";

const SQLITE: &str = "SELECT tables.name AS \"table\", tables.type AS kind, columns.name AS \"column\", columns.type AS type, \
    NOT columns.\"notnull\" AS nullable, columns.pk > 0 AS is_key \
    FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns \
    WHERE tables.type IN ('table', 'view') AND tables.name NOT LIKE 'sqlite~_%' ESCAPE '~' AND (?1 IS NULL OR tables.name = ?1) \
    ORDER BY tables.name, columns.cid";

/// Returns the tool.
pub(super) fn inspect(databases: &Databases) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let summary = "Lists databases, or the schema of one.";
    let definition = databases.define("schema_inspect", summary, schema_of::<Arguments>())?;
    let definition = Definition { description: DESCRIPTION.to_owned(), ..definition };
    Ok(tool(definition, SqlSchemaTool(databases.clone())))
}

impl TypedTool for SqlSchemaTool {
    type Arguments = Arguments;

    async fn call(&self, _: &Caller, arguments: Arguments) -> Answer {
        let Arguments { database, table } = arguments;
        let Some(database) = database else { return Ok(Success::of(self.listed())) };
        let rows = match &self.0.find(&database)?.engine {
            DatabaseLocation::Sqlite(path) => sqlite::look(path, SQLITE, table).await?,
            DatabaseLocation::Postgres(server) => postgres::look(server, table).await?,
        };
        Ok(Success::of(rows.told()))
    }

    async fn scope(&self, _: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        arguments.database.map_or_else(|| Ok(CallScope::new()), |name| self.0.scope(&name))
    }
}

// === impl SqlSchemaTool ===

impl SqlSchemaTool {
    fn listed(&self) -> Value {
        let all = self.0.0.iter().map(|database| {
            json!({ "name": database.name, "kind": database.engine.kind(), "writable": database.is_writable })
        });
        json!({ "databases": all.collect::<Vec<Value>>() })
    }
}
