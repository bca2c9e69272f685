//! Trust events recorded for agents on this machine, and the access levels that agents have earned.

use crate::access::configuration;
use crate::error::CliError;
use crate::state;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::trust::TrustEvent;
use belljar_gateway::access::TrustRecords;
use belljar_policy::access::EarnedLevels;
use belljar_policy::trust::{Replay, TrustConfig};
use belljar_store::database::{Database, Location};
use belljar_store::trust::TrustEvents;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use tokio::runtime::Runtime;

/// Recorded trust events with the configuration that evaluates them.
pub(crate) struct TrustEventStore {
    pub(crate) runtime: Runtime,
    book: TrustRecords,
}

/// Returns the trust settings of the configuration; the default settings if it has none.
pub(crate) fn config(named: Option<&Path>) -> Result<TrustConfig, CliError> {
    Ok(configuration(named)?.and_then(|configuration| configuration.trust).unwrap_or_default())
}

/// Parses the name of a tool category.
pub(crate) fn parse_category(text: &str) -> Result<Category, String> {
    let known = || Category::ALL.map(Category::as_str).join(", ");
    Category::named(text).ok_or_else(|| format!("{text:?} is no category; there are {}", known()))
}

/// Opens the trust events of this machine's agents database.
pub(crate) async fn events() -> Result<TrustEvents, CliError> {
    events_in(&Location::File(state::agents_database()?)).await
}

/// Opens the trust events of the database at this location.
async fn events_in(location: &Location) -> Result<TrustEvents, CliError> {
    Ok(TrustEvents::new(Database::open(location).await?))
}

/// Returns the trust that an agent has earned so far; `None` where the configuration alone sets the levels. If levels are earned, an agent
/// without records starts as a newcomer.
pub(crate) fn earned(named: Option<&Path>, agent: &AgentId) -> Result<Option<EarnedLevels>, CliError> {
    let config = config(named)?;
    if config.is_disabled() && !state::has_agents_database() {
        return Ok(None);
    }
    let book = TrustEventStore::open(config, None)?;
    let earned = book.of(agent)?.earned(book.config());
    Ok(earned.or_else(|| book.config().of_newcomer()))
}

/// Returns true if this machine has trust records of the agent, or if the configuration sets a level for newcomers.
pub(crate) fn covers(named: Option<&Path>, agent: &AgentId) -> Result<bool, CliError> {
    let config = config(named)?;
    if config.of_newcomer().is_some() || !state::has_agents_database() {
        return Ok(config.of_newcomer().is_some());
    }
    Ok(TrustEventStore::open(config, None)?.agents()?.contains(agent))
}

/// Returns the trust events of each agent, from the given database or else from this machine's. The map is empty if neither exists.
pub(crate) fn recorded(
    config: &TrustConfig,
    location: Option<&Location>,
) -> Result<BTreeMap<AgentId, Vec<TrustEvent>>, CliError> {
    if location.is_none() && !state::has_agents_database() {
        return Ok(BTreeMap::new());
    }
    let book = TrustEventStore::open(config.clone(), location)?;
    let agents = book.agents()?.into_iter();
    agents.map(|agent| Ok((agent.clone(), book.runtime.block_on(book.events().of(&agent))?))).collect()
}

// === impl TrustEventStore ===

impl TrustEventStore {
    /// Opens the trust records of the given database, or else those of this machine.
    pub(crate) fn open(config: TrustConfig, location: Option<&Location>) -> Result<Self, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| CliError::Runtime { source })?;
        let events = match location {
            None => runtime.block_on(events())?,
            Some(location) => runtime.block_on(events_in(location))?,
        };
        Ok(Self { runtime, book: TrustRecords::new(events, config) })
    }

    pub(crate) fn events(&self) -> &TrustEvents {
        self.book.events()
    }

    pub(crate) fn config(&self) -> &TrustConfig {
        self.book.config()
    }

    pub(crate) fn of(&self, agent: &AgentId) -> Result<Replay, CliError> {
        Ok(self.runtime.block_on(self.book.of(agent, Timestamp::now()))?)
    }

    pub(crate) fn agents(&self) -> Result<Vec<AgentId>, CliError> {
        Ok(self.runtime.block_on(self.events().agents())?.into_keys().collect())
    }
}
