//! The access rules of a node: identities of job agents, and the permissions of their sandboxes.
//!
//! ```text
//! job ─► agent_id, else default level ─► Identity ─┬─► HouseAccess: each call
//! session ─► agent_id, else default level ┘         └─► Terms: its sandbox, on request, at its start and while it exists
//! ```
//! A node without access rules has no `NodeAccessRules`, and restricts no agent.

mod order;
mod terms;

pub(crate) use order::AccessRequest;
pub(crate) use terms::{PermissionExceeded, SandboxPermissions};

use belljar_contract::id::AgentId;
use belljar_gateway::access::RuleBasedAccess;
use belljar_policy::access::compiled::SandboxAccess;
use belljar_policy::access::{AccessRules, UnknownAgentError};
use belljar_policy::trust::TrustConfig;
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The access rules that apply to a node's agents.
#[derive(Debug, Clone)]
pub(crate) struct NodeAccessRules {
    access: Arc<RuleBasedAccess>,
}

// === impl NodeAccessRules ===

impl NodeAccessRules {
    /// Returns the node's access rules. Agents without trust records have the permissions that `trust` gives to newcomers.
    pub(crate) fn new(rules: AccessRules, trust: &TrustConfig) -> Self {
        // Tools run on the host or on other servers, so there are no tool permissions of a sandbox here.
        let access = RuleBasedAccess::new(rules, BTreeMap::new()).with_newcomers(trust.of_newcomer());
        Self { access: Arc::new(access) }
    }

    /// Returns the rules by which calls are decided.
    pub(crate) fn access(&self) -> &Arc<RuleBasedAccess> {
        &self.access
    }

    /// Returns the identity of an agent; the default level's if there is none.
    pub(crate) fn identity(&self, agent: Option<&AgentId>) -> Identity {
        agent.map_or(Identity::Level(self.access.default_level()), |agent| Identity::Agent(agent.clone()))
    }

    /// Returns the current permissions of an identity.
    pub(crate) fn compiled(&self, identity: &Identity) -> SandboxAccess {
        SandboxAccess::of_agent(&self.access.of(identity).agent.permissions)
    }

    /// Returns the hosts that web tools may reach for a caller.
    pub(crate) fn web_of(&self, identity: &Identity) -> SandboxAccess {
        SandboxAccess::of_web_tools(&self.access.of(identity).agent.permissions)
    }

    /// Returns true if an identity's current permissions cover those of a sandbox with these terms.
    pub(crate) fn has(&self, identity: &Identity, terms: &SandboxPermissions) -> bool {
        terms.compiled().is_within(&self.compiled(identity))
    }

    /// Returns true if the current permissions of the sandbox's own identity still cover its terms.
    pub(crate) fn still_allows(&self, terms: &SandboxPermissions) -> bool {
        self.has(terms.identity(), terms)
    }

    /// Refuses an agent that has neither rules nor trust records, as `--agent` does.
    ///
    /// # Errors
    /// [`UnknownAgentError`], with a similar name, if there is one.
    pub(crate) fn check_known(&self, agent: Option<&AgentId>) -> Result<(), UnknownAgentError> {
        agent.map_or(Ok(()), |agent| self.access.check_known(agent))
    }

    /// Returns the terms of a sandbox for that agent, if the agent's permissions cover the request.
    ///
    /// # Errors
    /// [`PermissionExceeded`]: the part of the request that exceeds the agent's permissions.
    pub(crate) fn terms(
        &self,
        agent: Option<&AgentId>,
        order: &AccessRequest<'_>,
    ) -> Result<SandboxPermissions, PermissionExceeded> {
        self.check_known(agent)?;
        let identity = self.identity(agent);
        let terms = SandboxPermissions::of(identity.clone(), &self.access.of(&identity), order)?;
        terms.admit(order)?;
        Ok(terms)
    }
}
