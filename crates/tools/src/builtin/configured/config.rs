//! `tools` in the configuration file: resources of the host's own tools.
//!
//! ```yaml
//! tools:
//!   databases:
//!     sqlite: [{name: house, path: /srv/house.db}]
//!     postgres: [{name: books, host: db.example, database: books, user: reader, password: {file: /run/keys/books}}]
//!   channels:
//!     webhooks: [{name: team, url: 'https://hooks.example/team', secret: {env: TEAM_KEY}, audience: internal}]
//!     slack: [{name: ops, url: 'https://hooks.slack.example/services/x'}]
//!     mail: [{name: owners, host: mail.example, from: bell@house.example, to: [owner@house.example]}]
//!   metrics: [{name: house, url: 'http://127.0.0.1:9090'}]
//! ```

mod channel;
mod database;
mod metrics;

pub use channel::{Audience, ChannelConfig, ChannelTransport};
pub use database::{DatabaseConfig, DatabaseLocation, PostgresConfig};
pub use metrics::MetricsConfig;

use belljar_contract::yaml::{Members, MistakeLog, Node, list, quoted};
use std::collections::BTreeSet;

/// The resources. Only those that are named exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsConfig {
    /// Databases that may be queried.
    pub databases: Vec<DatabaseConfig>,
    /// Message channels.
    pub channels: Vec<ChannelConfig>,
    /// Metrics servers.
    pub metrics: Vec<MetricsConfig>,
}

// === impl ToolsConfig ===

impl ToolsConfig {
    /// Reads the section; mistakes are logged.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let read = Self {
            databases: members.section("databases", database::read),
            channels: members.section("channels", channel::read),
            metrics: members
                .or("metrics", Vec::new(), |node, log| Some(named(node, log, MetricsConfig::read))),
        };
        members.finish();
        read
    }
}

/// A resource with a name.
trait NamedResource {
    fn name(&self) -> &str;
}

/// Reads a list of named resources; duplicates are logged.
fn named<T: NamedResource>(
    node: &Node,
    log: &mut MistakeLog,
    mut read: impl FnMut(&Node, &mut MistakeLog) -> Option<T>,
) -> Vec<T> {
    let all = list(node, log, |node, log| Some((read(node, log)?, node.position, node.path.clone())));
    let all = all.unwrap_or_default();
    for (at, (one, position, path)) in all.iter().enumerate() {
        if all.iter().take(at).any(|(other, ..)| other.name() == one.name()) {
            log.note(*position, path, format!("{} again", quoted(one.name())), "each name once");
        }
    }
    all.into_iter().map(|(one, ..)| one).collect()
}

/// Joins several lists; names that two of them have are logged.
fn together<T: NamedResource>(
    node: &Node,
    log: &mut MistakeLog,
    lists: impl IntoIterator<Item = Vec<T>>,
) -> Vec<T> {
    let mut all = Vec::<T>::new();
    for list in lists {
        // Duplicates within a list were logged before.
        let names: BTreeSet<&str> = list.iter().map(NamedResource::name).collect();
        for name in names.into_iter().filter(|name| all.iter().any(|other| other.name() == *name)) {
            log.note(node.position, &node.path, format!("{} of two kinds", quoted(name)), "each name once");
        }
        all.extend(list);
    }
    all
}

#[cfg(test)]
mod tests;
