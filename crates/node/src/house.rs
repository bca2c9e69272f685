//! The house's rules at a node: as whom agents of jobs call, and what their sandboxes have by that.
//!
//! ```text
//! job ─► agent_id, or the usual level ─► Identity ─┬─► HouseAccess: each call
//! session ─► agent_id, or the usual level ┘         └─► Terms: its sandbox, when it is asked for, at its start and while it is there
//! ```
//! A node without such rules has no house, and judges nobody.

mod order;
mod terms;

pub(crate) use order::Order;
pub(crate) use terms::{Terms, TooMuch};

use belljar_contract::id::AgentId;
use belljar_gateway::access::HouseAccess;
use belljar_policy::access::compiled::Compiled;
use belljar_policy::access::{AccessRules, UnknownAgentError};
use belljar_policy::trust::TrustConfig;
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rules by which a node's agents are judged.
#[derive(Debug, Clone)]
pub(crate) struct House {
    access: Arc<HouseAccess>,
}

// === impl House ===

impl House {
    /// One with these rules, where agents of whom nothing is recorded have what that says of newcomers.
    pub(crate) fn new(rules: AccessRules, trust: &TrustConfig) -> Self {
        // What tools do here the host itself does, or somebody elsewhere.
        let access = HouseAccess::new(rules, BTreeMap::new()).with_newcomers(trust.of_newcomer());
        Self { access: Arc::new(access) }
    }

    /// By what calls are judged.
    pub(crate) fn access(&self) -> &Arc<HouseAccess> {
        &self.access
    }

    /// As whom somebody is judged.
    pub(crate) fn identity(&self, agent: Option<&AgentId>) -> Identity {
        agent.map_or(Identity::Level(self.access.default_level()), |agent| Identity::Agent(agent.clone()))
    }

    /// What somebody may have by now.
    pub(crate) fn compiled(&self, identity: &Identity) -> Compiled {
        Compiled::of_agent(&self.access.of(identity).agent.permissions)
    }

    /// What tools of the web may reach for a caller.
    pub(crate) fn web_of(&self, identity: &Identity) -> Compiled {
        Compiled::of_web_tools(&self.access.of(identity).agent.permissions)
    }

    /// Whether somebody has no less than a sandbox that was made by these terms.
    pub(crate) fn has(&self, identity: &Identity, terms: &Terms) -> bool {
        terms.compiled().is_within(&self.compiled(identity))
    }

    /// Whether somebody whose sandbox was made by these terms has no less by now.
    pub(crate) fn still_allows(&self, terms: &Terms) -> bool {
        self.has(terms.identity(), terms)
    }

    /// Refuses an agent of which nothing is said and nothing is recorded, as `--agent` does.
    ///
    /// # Errors
    /// [`UnknownAgentError`], with the name that was meant, perhaps.
    pub(crate) fn check_known(&self, agent: Option<&AgentId>) -> Result<(), UnknownAgentError> {
        agent.map_or(Ok(()), |agent| self.access.check_known(agent))
    }

    /// What a sandbox has that is for that agent, if no more than that is asked for.
    ///
    /// # Errors
    /// [`TooMuch`]: what is asked for that the agent doesn't have.
    pub(crate) fn terms(&self, agent: Option<&AgentId>, order: &Order<'_>) -> Result<Terms, TooMuch> {
        self.check_known(agent)?;
        let identity = self.identity(agent);
        let terms = Terms::of(identity.clone(), &self.access.of(&identity), order)?;
        terms.admit(order)?;
        Ok(terms)
    }
}
