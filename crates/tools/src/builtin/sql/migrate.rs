//! `sql_migrate`: applies several statements in one transaction, and records them in the database under a name.

use super::sqlite::Migration;
use super::statement::{self, Kind};
use super::{DatabaseLocation, Databases, postgres, sqlite};
use crate::Tool;
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::BuiltInAction;
use belljar_contract::approval::CallScope;
use belljar_contract::tool::{DomainCode, InvalidToolNameError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// The migration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Name of the database.
    #[schemars(length(min = 1, max = 32))]
    database: String,
    /// Name of the migration: it is recorded under it, and not applied again.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9._-]+$"), extend("x-belljar-expected" = NAME_FORM))]
    name: String,
    /// The statements, in order; one per element.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 65_536)))]
    statements: Vec<String>,
}

struct SqlMigrateTool(Databases);

/// Description of valid names.
const NAME_FORM: &str = "letters, digits, `.`, `_` and `-`";

const DESCRIPTION: &str = "Applies a migration to a writable database: all of its statements in one \
    transaction, or none. The migration is recorded in the table `belljar_migrations`; applying it \
    again changes nothing and returns `applied: false`, and a different migration of the same name \
    fails with `conflict`. Transaction statements, settings and access to other files are rejected.";

/// Returns the tool.
pub(super) fn migrate(databases: &Databases) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let said = ("sql_migrate", "Applies a migration to a database.");
    let definition = databases.define_change(said, schema_of::<Arguments>(), BuiltInAction::DbAdmin)?;
    let definition = Definition { description: DESCRIPTION.to_owned(), is_guarded: true, ..definition };
    Ok(tool(definition, SqlMigrateTool(databases.clone())))
}

impl TypedTool for SqlMigrateTool {
    type Arguments = Arguments;

    async fn call(&self, _: &Caller, arguments: Arguments) -> Answer {
        let Arguments { database, name, statements } = arguments;
        let database = self.0.find_writable(&database)?;
        let statements: Result<Vec<String>, Failure> = statements
            .iter()
            .map(|statement| Ok(statement::one(statement, Kind::Defines)?.to_owned()))
            .collect();
        let statements = statements?;
        let migration = Migration { name, sha256: hash(&statements), statements };
        let (sha256, count) = (migration.sha256.clone(), migration.statements.len());
        let is_applied = match &database.engine {
            DatabaseLocation::Sqlite(path) => sqlite::migrate(path, migration).await?,
            DatabaseLocation::Postgres(server) => postgres::migrate(server, &migration).await?,
        };
        Ok(Success::of(json!({ "applied": is_applied, "statements": count, "sha256": sha256 })))
    }

    async fn scope(&self, _: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        self.0.scope(&arguments.database)
    }
}

/// Compares a migration with the recorded one of that name: an equal one needs no work, another one is a conflict.
pub(super) fn applied_before(there: &str, sha256: &str) -> Result<bool, Failure> {
    match there == sha256 {
        true => Ok(false),
        false => Err(Failure::new(
            DomainCode::Conflict,
            "a different migration of that name has already been \
    applied",
        )),
    }
}

/// Returns the hash of all statements, each with a terminator.
fn hash(statements: &[String]) -> String {
    let mut hash = Sha256::new();
    for statement in statements {
        hash.update(statement);
        hash.update([0]);
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
