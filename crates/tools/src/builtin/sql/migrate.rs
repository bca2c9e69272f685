//! `sql_migrate`: what there is in a database, changed by several statements at once and written down there by a name.

use super::sqlite::Migration;
use super::statement::{self, Kind};
use super::{Databases, Engine, postgres, sqlite};
use crate::Tool;
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::definition::Definition;
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::Leaf;
use belljar_contract::approval::CallScope;
use belljar_contract::tool::{DomainCode, InvalidToolNameError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;

/// What is applied.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The database, by its name.
    #[schemars(length(min = 1, max = 32))]
    database: String,
    /// The name of the migration: under it is written down that it was applied, and it is not applied again.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9._-]+$"), extend("x-belljar-expected" = NAME_FORM))]
    name: String,
    /// The statements, in their order; each is one.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 65_536)))]
    statements: Vec<String>,
}

struct Migrate(Databases);

/// What the name of a migration is made of.
const NAME_FORM: &str = "letters, digits, `.`, `_` and `-`";

const DESCRIPTION: &str = "Applies a migration to a database that this host's configuration says may be changed: all of its statements in \
    one transaction, or none. It is written down in the database, in `belljar_migrations`; the same again changes nothing and has \
    `applied: false`, and another one of the same name is a `conflict`. Statements that are transactions themselves, settings and other \
    files are refused.";

/// The tool.
pub(super) fn migrate(databases: &Databases) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let said = ("sql_migrate", "Applies a migration to a database.");
    let definition = databases.define_change(said, schema_of::<Arguments>(), Leaf::DbAdmin)?;
    let definition = Definition { description: DESCRIPTION.to_owned(), is_guarded: true, ..definition };
    Ok(tool(definition, Migrate(databases.clone())))
}

impl TypedTool for Migrate {
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
            Engine::Sqlite(path) => sqlite::migrate(path, migration).await?,
            Engine::Postgres(server) => postgres::migrate(server, &migration).await?,
        };
        Ok(Success::of(json!({ "applied": is_applied, "statements": count, "sha256": sha256 })))
    }

    async fn scope(&self, _: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        self.0.scope(&arguments.database)
    }
}

/// What becomes of a migration whose name is known: nothing, if it is the same.
pub(super) fn applied_before(there: &str, sha256: &str) -> Result<bool, Failure> {
    match there == sha256 {
        true => Ok(false),
        false => {
            Err(Failure::new(DomainCode::Conflict, "another migration of that name has been applied before"))
        }
    }
}

/// Of all of them, each with its end.
fn hash(statements: &[String]) -> String {
    let mut hash = Sha256::new();
    for statement in statements {
        hash.update(statement);
        hash.update([0]);
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a text doesn't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
