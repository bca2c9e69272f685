//! The rules of one house, and what its agents have earned, put together once for each agent and thrown away when either changes.

use super::{Access, Stood};
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_policy::access::{AccessRules, Earned, UnknownAgentError};
use belljar_policy::constraint::WorksIn;
use belljar_tools::caller::{Caller, Identity};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Such rules.
#[derive(Debug)]
pub struct HouseAccess {
    now: RwLock<Now>,
    /// What agents have of whom it isn't known what they have earned; nothing, where the configuration says it.
    newcomers: Option<Earned>,
    works_in: BTreeMap<Category, WorksIn>,
}

#[derive(Debug)]
struct Now {
    rules: Arc<AccessRules>,
    earned: BTreeMap<AgentId, Earned>,
    of_agents: BTreeMap<AgentId, Arc<Stood>>,
    of_levels: BTreeMap<AccessLevel, Arc<Stood>>,
}

/// As many agents are kept in mind.
const MOST_KEPT: usize = 10_000;

/// So much of a digest is enough to tell rules apart.
const DIGITS: usize = 12;

// === impl HouseAccess ===

impl HouseAccess {
    /// One for these rules, where tools work there; those of other categories work nowhere but on the host.
    pub fn new(rules: AccessRules, works_in: BTreeMap<Category, WorksIn>) -> Self {
        let now = Now {
            rules: Arc::new(rules),
            earned: BTreeMap::new(),
            of_agents: BTreeMap::new(),
            of_levels: BTreeMap::new(),
        };
        Self { now: RwLock::new(now), newcomers: None, works_in }
    }

    /// The same, where agents of whom nothing is known yet have earned that.
    #[must_use]
    pub fn with_newcomers(self, newcomers: Option<Earned>) -> Self {
        Self { newcomers, ..self }
    }

    /// Has these be the rules from now on.
    pub fn set_rules(&self, rules: AccessRules) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        now.rules = Arc::new(rules);
        now.of_agents.clear();
        now.of_levels.clear();
    }

    /// The level of agents of which nothing else is said.
    pub fn default_level(&self) -> AccessLevel {
        self.now.read().unwrap_or_else(PoisonError::into_inner).rules.default_level()
    }

    /// Refuses an agent of which nothing is said: not by the rules, not of newcomers, and not by what it has earned.
    ///
    /// # Errors
    /// [`UnknownAgentError`], with the name that was meant, perhaps.
    pub fn check_known(&self, agent: &AgentId) -> Result<(), UnknownAgentError> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        match now.rules.covers(agent) || self.newcomers.is_some() || now.earned.contains_key(agent) {
            true => Ok(()),
            false => Err(now.rules.unknown(agent)),
        }
    }

    /// Has this be what an agent has earned from now on; nothing, if it has earned nothing.
    pub fn set_earned(&self, agent: &AgentId, earned: Option<Earned>) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        match earned {
            Some(earned) => drop(now.earned.insert(agent.clone(), earned)),
            None => drop(now.earned.remove(agent)),
        }
        now.of_agents.remove(agent);
    }

    /// What somebody may, as of now.
    pub fn of(&self, identity: &Identity) -> Arc<Stood> {
        self.kept(identity).unwrap_or_else(|| self.made(identity))
    }

    fn kept(&self, identity: &Identity) -> Option<Arc<Stood>> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        match identity {
            Identity::Agent(agent) => now.of_agents.get(agent).cloned(),
            Identity::Level(level) => now.of_levels.get(level).cloned(),
        }
    }

    fn made(&self, identity: &Identity) -> Arc<Stood> {
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
        let stood = Arc::new(Stood { rules, agent, generation });
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

impl Access for HouseAccess {
    fn standing(&self, caller: &Caller) -> Option<Arc<Stood>> {
        caller.identity.as_ref().map(|identity| self.of(identity))
    }

    fn works_in(&self, category: Category) -> WorksIn {
        self.works_in.get(&category).copied().unwrap_or(WorksIn::Host)
    }
}

fn generation(rules: &AccessRules, earned: Option<&Earned>) -> String {
    // Both are ordered throughout, so what is equal reads equal.
    let digest = Sha256::digest(format!("{rules:?}|{earned:?}"));
    let mut text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(DIGITS);
    text
}
