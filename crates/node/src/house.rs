//! The house's rules at a node: as whom agents of jobs call, and what their sandboxes have by that.
//!
//! ```text
//! job ─► agent_id, or the usual level ─► Identity ─┬─► HouseAccess: each call
//!                                                  └─► Terms: its sandbox, at submission, at its start and while it runs
//! ```
//! A node without such rules has no house, and judges nobody.

mod terms;

pub(crate) use terms::{Terms, TooMuch};

use crate::images::Image;
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::worker::assignment::SandboxOrder;
use belljar_gateway::access::HouseAccess;
use belljar_policy::access::AccessRules;
use belljar_policy::access::compiled::{Compiled, ProgramTerms, WebTerms};
use belljar_policy::trust::TrustConfig;
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rules by which a node's agents are judged.
#[derive(Debug, Clone)]
pub(crate) struct House {
    access: Arc<HouseAccess>,
    default_level: AccessLevel,
}

// === impl House ===

impl House {
    /// One with these rules, where agents of whom nothing is recorded have what that says of newcomers.
    pub(crate) fn new(rules: AccessRules, trust: &TrustConfig) -> Self {
        let default_level = rules.default_level();
        // What tools do here the host itself does, or somebody elsewhere.
        let access = HouseAccess::new(rules, BTreeMap::new()).with_newcomers(trust.of_newcomer());
        Self { access: Arc::new(access), default_level }
    }

    /// By what calls are judged.
    pub(crate) fn access(&self) -> &Arc<HouseAccess> {
        &self.access
    }

    /// As whom somebody is judged.
    pub(crate) fn identity(&self, agent: Option<&AgentId>) -> Identity {
        agent.map_or(Identity::Level(self.default_level), |agent| Identity::Agent(agent.clone()))
    }

    /// What somebody may have by now.
    pub(crate) fn compiled(&self, identity: &Identity) -> Compiled {
        Compiled::of(self.access.of(identity).agent.permissions.constraints())
    }

    /// Whether somebody has all that a sandbox at a node can have: what is made for nobody in particular is for them alone.
    pub(crate) fn has_everything(&self, identity: &Identity) -> bool {
        let compiled = self.compiled(identity);
        let is_open = matches!(compiled.web, WebTerms::Open { refuses_pushes: false });
        is_open && compiled.git.fetches && compiled.programs == ProgramTerms::All
    }

    /// Whether somebody whose sandbox was made by these terms has no less by now.
    pub(crate) fn still_allows(&self, terms: &Terms) -> bool {
        terms.compiled().is_within(&self.compiled(terms.identity()))
    }

    /// What a job's sandbox has, if it asks for no more than that.
    ///
    /// # Errors
    /// [`TooMuch`]: what it asks for that its agent doesn't have.
    pub(crate) fn terms(
        &self,
        agent: Option<&AgentId>,
        (sandbox, image): (&SandboxOrder, &Image),
    ) -> Result<Terms, TooMuch> {
        let identity = self.identity(agent);
        let terms = Terms::of(identity.clone(), &self.access.of(&identity), sandbox)?;
        terms.admit(sandbox, image)?;
        Ok(terms)
    }
}
