//! Tools whose resources the configuration names: databases, message channels, metrics servers.

pub mod config;

use super::message::{self, Messengers};
use super::metrics;
use super::sql;
use crate::Tool;
use belljar_contract::tool::InvalidToolNameError;
use belljar_egress::credential::Credential;
use config::{DatabaseConfig, DatabaseLocation, ToolsConfig};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Configured tools, and resources that can't be used.
pub struct ConfiguredTools {
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Resources that can't be used. Their tools exist nevertheless, and report the problem until it is solved.
    pub unusable: Vec<UnusableError>,
}

/// A configured resource that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the {kind} {name} can't be used")]
pub struct UnusableError {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The cause.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// Reasons why the tools can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfiguredError {
    /// A tool has an invalid name.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// The thread that sends messages can't be started.
    #[error("can't start the message sender")]
    Start(#[from] io::Error),
}

/// Returns the tools for the configured resources.
///
/// # Errors
/// [`ConfiguredError`].
pub fn tools(config: &ToolsConfig) -> Result<ConfiguredTools, ConfiguredError> {
    let mut tools = sql::tools(config.databases.clone())?;
    if !config.channels.is_empty() {
        tools.extend(message::tools(&Messengers::start(config.channels.clone())?)?);
    }
    if !config.metrics.is_empty() {
        tools.extend(metrics::tools(config.metrics.clone())?);
    }
    Ok(ConfiguredTools { tools, unusable: unusable(config) })
}

fn unusable(config: &ToolsConfig) -> Vec<UnusableError> {
    let databases = config.databases.iter().filter_map(|database| {
        let source = of_database(database).err()?;
        Some(UnusableError { kind: "database", name: database.name.clone(), source })
    });
    let channels = config.channels.iter().filter_map(|channel| {
        let source = channel.secret().and_then(|secret| of_secret(secret).err())?;
        Some(UnusableError { kind: "channel", name: channel.name.clone(), source })
    });
    databases.chain(channels).collect()
}

/// Checks a database. A server is only connected to on use, as it may start later.
fn of_database(database: &DatabaseConfig) -> Result<(), Box<dyn Error + Send + Sync>> {
    match &database.engine {
        DatabaseLocation::Sqlite(path) => Ok(sql::check(path)?),
        DatabaseLocation::Postgres(server) => {
            server.authority.as_ref().map(std::fs::metadata).transpose()?;
            server.password.as_ref().map_or(Ok(()), |password| of_secret(password))
        }
    }
}

fn of_secret(secret: &Credential) -> Result<(), Box<dyn Error + Send + Sync>> {
    Ok(secret.check()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use belljar_contract::tool::AgentKind;
    use belljar_contract::yaml::{self, MistakeLog};
    use serde_json::{Value, json};

    const CONFIG: &str = "
databases:
  sqlite: [{name: notes, path: /srv/notes.db, writable: true}]
  postgres: [{name: orders, host: db.example, database: orders, user: app, password: {file: /etc/belljar/orders}}]
channels:
  slack: [{name: team, url: 'https://hooks.example/services/a-credential', audience: internal}]
metrics: [{name: load, url: 'https://metrics.example/prom'}]
";

    #[tokio::test]
    async fn call_scope_resolves_resource_names_without_credentials() {
        let mut log = MistakeLog::default();
        let root = yaml::parse(CONFIG.as_bytes(), &mut log).unwrap();
        let config = ToolsConfig::read(&root, &mut log);
        log.finish().unwrap();
        let all = tools(&config).unwrap().tools;
        let scope = async |name: &str, arguments: Value| {
            let tool = all.iter().find(|tool| tool.definition().name.as_str() == name).unwrap();
            let caller = Caller::of(AgentKind::Operator);
            tool.scope(&caller, arguments.as_object().unwrap().clone()).await.map(Value::Object)
        };
        let query = |database: &str| json!({ "database": database, "query": "SELECT 1" });
        let notes = json!({ "database": { "sqlite": "/srv/notes.db" } });
        assert_eq!(scope("sql_query", query("notes")).await, Ok(notes.clone()));
        let change = json!({ "database": "notes", "statement": "DELETE FROM a" });
        assert_eq!(scope("sql_execute", change).await, Ok(notes));
        let orders = json!({ "postgres": { "host": "db.example", "port": 5432, "database": "orders", "user": "app" } });
        assert_eq!(scope("sql_query", query("orders")).await, Ok(json!({ "database": orders })));
        let load = json!({ "source": { "url": "https://metrics.example/prom" } });
        assert_eq!(scope("query_metrics", json!({ "source": "load", "query": "up" })).await, Ok(load));
        let message = json!({ "channel": "team", "subject": "a", "message": "b" });
        let team = scope("send_notification", message).await.unwrap();
        assert_eq!(team["channel"]["slack"]["origin"], "https://hooks.example");
        assert!(
            team["channel"]["slack"]["url_sha256"].is_string() && !team.to_string().contains("a-credential")
        );
        // A call that can't be made has no scope.
        assert!(scope("sql_query", query("none")).await.is_err());
    }
}
