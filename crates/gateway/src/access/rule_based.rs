//! The access rules and the trust of agents, combined once for each agent; the result is discarded when either changes.

use super::{Access, AccessStanding};
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_policy::access::{AccessRules, EarnedLevels, UnknownAgentError};
use belljar_policy::constraint::ExecutionLocation;
use belljar_tools::caller::{Caller, Identity};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Access rules with earned trust.
#[derive(Debug)]
pub struct RuleBasedAccess {
    now: RwLock<CurrentRules>,
    /// Trust of agents without records; `None` if the configuration sets their level.
    newcomers: Option<EarnedLevels>,
    works_in: BTreeMap<Category, ExecutionLocation>,
}

#[derive(Debug)]
struct CurrentRules {
    rules: Arc<AccessRules>,
    earned: BTreeMap<AgentId, EarnedLevels>,
    of_agents: BTreeMap<AgentId, Arc<AccessStanding>>,
    of_levels: BTreeMap<AccessLevel, Arc<AccessStanding>>,
}

/// Maximum number of agents whose combined permissions are cached.
const MOST_KEPT: usize = 10_000;

/// Length of a generation, in digits of a digest.
const DIGITS: usize = 12;

// === impl RuleBasedAccess ===

impl RuleBasedAccess {
    /// Returns access under these rules; `works_in` maps categories to the place where their tools run; others run on the host.
    pub fn new(rules: AccessRules, works_in: BTreeMap<Category, ExecutionLocation>) -> Self {
        let now = CurrentRules {
            rules: Arc::new(rules),
            earned: BTreeMap::new(),
            of_agents: BTreeMap::new(),
            of_levels: BTreeMap::new(),
        };
        Self { now: RwLock::new(now), newcomers: None, works_in }
    }

    /// Sets the trust of agents without records.
    #[must_use]
    pub fn with_newcomers(self, newcomers: Option<EarnedLevels>) -> Self {
        Self { newcomers, ..self }
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: AccessRules) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        now.rules = Arc::new(rules);
        now.of_agents.clear();
        now.of_levels.clear();
    }

    /// Returns the level of agents that no rule mentions.
    pub fn default_level(&self) -> AccessLevel {
        self.now.read().unwrap_or_else(PoisonError::into_inner).rules.default_level()
    }

    /// Refuses an agent without a rule and without earned trust, unless newcomers have trust.
    ///
    /// # Errors
    /// [`UnknownAgentError`], with a similar name, if there is one.
    pub fn check_known(&self, agent: &AgentId) -> Result<(), UnknownAgentError> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        match now.rules.covers(agent) || self.newcomers.is_some() || now.earned.contains_key(agent) {
            true => Ok(()),
            false => Err(now.rules.unknown(agent)),
        }
    }

    /// Sets an agent's earned trust; `None` removes it.
    pub fn set_earned(&self, agent: &AgentId, earned: Option<EarnedLevels>) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        match earned {
            Some(earned) => drop(now.earned.insert(agent.clone(), earned)),
            None => drop(now.earned.remove(agent)),
        }
        now.of_agents.remove(agent);
    }

    /// Returns the current standing of an identity.
    pub fn of(&self, identity: &Identity) -> Arc<AccessStanding> {
        self.kept(identity).unwrap_or_else(|| self.made(identity))
    }

    fn kept(&self, identity: &Identity) -> Option<Arc<AccessStanding>> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        match identity {
            Identity::Agent(agent) => now.of_agents.get(agent).cloned(),
            Identity::Level(level) => now.of_levels.get(level).cloned(),
        }
    }

    fn made(&self, identity: &Identity) -> Arc<AccessStanding> {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let rules = Arc::clone(&now.rules);
        let (agent, earned) = match identity {
            Identity::Agent(agent) => {
                let earned = now.earned.get(agent).or(self.newcomers.as_ref());
                (rules.of_agent(agent, earned), earned.cloned())
            }
            Identity::Level(level) => (rules.of_level(*level), None),
        };
        let generation = generation(&rules, earned.as_ref());
        let stood = Arc::new(AccessStanding { rules, agent, generation });
        match identity {
            Identity::Agent(agent) => {
                if now.of_agents.len() >= MOST_KEPT {
                    now.of_agents.clear();
                }
                now.of_agents.insert(agent.clone(), Arc::clone(&stood));
            }
            Identity::Level(level) => drop(now.of_levels.insert(*level, Arc::clone(&stood))),
        }
        stood
    }
}

impl Access for RuleBasedAccess {
    fn standing(&self, caller: &Caller) -> Option<Arc<AccessStanding>> {
        caller.identity.as_ref().map(|identity| self.of(identity))
    }

    fn works_in(&self, category: Category) -> ExecutionLocation {
        self.works_in.get(&category).copied().unwrap_or(ExecutionLocation::Host)
    }
}

fn generation(rules: &AccessRules, earned: Option<&EarnedLevels>) -> String {
    // Both are ordered maps, so equal values have equal texts.
    let digest = Sha256::digest(format!("{rules:?}|{earned:?}"));
    let mut text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(DIGITS);
    text
}
