//! `sql_execute`: changes rows of a writable database.

use super::statement::{self, Kind};
use super::{DatabaseLocation, Databases, Parameter, postgres, sqlite};
use crate::Tool;
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::BuiltInAction;
use belljar_contract::approval::CallScope;
use belljar_contract::tool::InvalidToolNameError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// The statement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Name of the database.
    #[schemars(length(min = 1, max = 32))]
    database: String,
    /// A statement: INSERT, UPDATE, DELETE, MERGE or REPLACE, without RETURNING. Its parameters are ?1, ?2, … in SQLite and $1,
    /// $2, … in PostgreSQL.
    #[schemars(length(min = 1, max = 65_536))]
    statement: String,
    /// Values of the parameters, in order.
    #[serde(default)]
    #[schemars(length(max = 100))]
    params: Vec<Parameter>,
}

struct SqlWriteTool(Databases);

const DESCRIPTION: &str = "Changes rows of a writable database with one statement, in its own \
    transaction. Returns `rows_affected`. Bind values with `params`; never insert them into the \
    statement. Fails with `permission_denied` if the database is read-only, and with `conflict` if \
    its constraints are violated.";

/// Returns the tool.
pub(super) fn execute(databases: &Databases) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let said = ("sql_execute", "Changes rows of a database with one statement.");
    let definition = databases.define_change(said, schema_of::<Arguments>(), BuiltInAction::DbMutate)?;
    let definition = Definition { description: DESCRIPTION.to_owned(), ..definition };
    Ok(tool(definition, SqlWriteTool(databases.clone())))
}

impl TypedTool for SqlWriteTool {
    type Arguments = Arguments;

    async fn call(&self, _: &Caller, arguments: Arguments) -> Answer {
        let Arguments { database, statement, params } = arguments;
        let database = self.0.find_writable(&database)?;
        let statement = statement::one(&statement, Kind::Changes)?.to_owned();
        let rows_affected = match &database.engine {
            DatabaseLocation::Sqlite(path) => sqlite::execute(path, statement, params).await?,
            DatabaseLocation::Postgres(server) => postgres::execute(server, &statement, &params).await?,
        };
        Ok(Success::of(json!({ "rows_affected": rows_affected })))
    }

    async fn scope(&self, _: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        self.0.scope(&arguments.database)
    }
}
