//! The tools that there are only where a configuration names what they work with: databases, channels of messages, servers of metrics.

pub mod config;

use super::message::{self, Messengers};
use super::metrics;
use super::sql;
use crate::Tool;
use belljar_contract::tool::InvalidToolNameError;
use belljar_egress::credential::Credential;
use config::{DatabaseConfig, Engine, ToolsConfig};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Tools, and what of the configuration can't be used as things are.
pub struct Configured {
    /// The tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What can't be used. Its tools are there all the same, and say so until it can.
    pub unusable: Vec<UnusableError>,
}

/// Something that is configured can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the {kind} {name} can't be used")]
pub struct UnusableError {
    /// What it is.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// There are no such tools.
#[derive(Debug, thiserror::Error)]
pub enum ConfiguredError {
    /// One has a name that is none.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// There can be no thread for what is sent.
    #[error("can't start what sends messages")]
    Start(#[from] io::Error),
}

/// Exactly what is configured.
///
/// # Errors
/// [`ConfiguredError`].
pub fn tools(config: &ToolsConfig) -> Result<Configured, ConfiguredError> {
    let mut tools = sql::tools(config.databases.clone())?;
    if !config.channels.is_empty() {
        tools.extend(message::tools(&Messengers::start(config.channels.clone())?)?);
    }
    if !config.metrics.is_empty() {
        tools.extend(metrics::tools(config.metrics.clone())?);
    }
    Ok(Configured { tools, unusable: unusable(config) })
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

/// Whether a database is there. A server is asked when it is needed: it may come later than this.
fn of_database(database: &DatabaseConfig) -> Result<(), Box<dyn Error + Send + Sync>> {
    match &database.engine {
        Engine::Sqlite(path) => Ok(sql::check(path)?),
        Engine::Postgres(server) => {
            server.authority.as_ref().map(std::fs::metadata).transpose()?;
            server.password.as_ref().map_or(Ok(()), |password| of_secret(password))
        }
    }
}

fn of_secret(secret: &Credential) -> Result<(), Box<dyn Error + Send + Sync>> {
    Ok(secret.check()?)
}
