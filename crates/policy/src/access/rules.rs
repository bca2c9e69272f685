//! What a house says of its agents: levels, agents by name, and how much they do by themselves.

mod config;

use super::UnknownAgentError;
use super::constraints::ConstraintOverrides;
use super::levels::Levels;
use crate::action::ActionRegistry;
use crate::autonomy::{Autonomy, AutonomyLevel, AutonomyLists, Seniority};
use crate::permission::{Permissions, ToolRules};
use crate::verdict::Standing;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use std::collections::BTreeMap;

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRules {
    actions: ActionRegistry,
    levels: Levels,
    /// Nothing, where it isn't written.
    default_level: Option<AccessLevel>,
    agents: BTreeMap<AgentId, AgentRules>,
    autonomy: HouseAutonomy,
}

/// How much agents do by themselves of whom nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HouseAutonomy {
    level: AutonomyLevel,
    departments: BTreeMap<String, AutonomyLevel>,
    lists: AutonomyLists,
}

/// What is said of one agent.
#[derive(Debug, Clone, Default, PartialEq)]
struct AgentRules {
    level: Option<AccessLevel>,
    allowed: ToolRules,
    denied: ToolRules,
    said: ConstraintOverrides,
    autonomy: Option<AutonomyLevel>,
    lists: AutonomyLists,
    department: Option<String>,
    seniority: Option<Seniority>,
}

/// The levels that an agent has come to by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earned {
    /// Its level.
    pub level: AccessLevel,
    /// Where it has another one for tools of a category.
    pub by_category: BTreeMap<Category, AccessLevel>,
    /// What has set it back.
    pub setback: Option<crate::autonomy::Setback>,
}

/// What one agent may do, as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStanding {
    /// Which tools, and what of their calls.
    pub permissions: Permissions,
    /// What of it takes a yes.
    pub autonomy: Autonomy,
}

// === impl AccessRules ===

impl AccessRules {
    /// Which actions there are.
    pub fn actions(&self) -> &ActionRegistry {
        &self.actions
    }

    /// What the levels allow.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The agents of whom something is said.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// Whether something is said of it.
    pub fn knows(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    /// The level of agents of which nothing else is said.
    pub fn default_level(&self) -> AccessLevel {
        self.default_level.unwrap_or(AccessLevel::Standard)
    }

    /// Whether something is said of it by name, or by a level that is written for agents which aren't listed.
    pub fn covers(&self, agent: &AgentId) -> bool {
        self.default_level.is_some() || self.knows(agent)
    }

    /// Why an agent is refused that isn't covered, with the name that was meant, perhaps.
    pub fn unknown(&self, agent: &AgentId) -> UnknownAgentError {
        UnknownAgentError::of(agent, self)
    }

    /// The level that an agent begins at.
    pub fn level_of(&self, agent: &AgentId) -> AccessLevel {
        self.agents.get(agent).and_then(|rules| rules.level).unwrap_or_else(|| self.default_level())
    }

    /// What that agent may do; of one that has earned its level, that level counts. One of whom `custom` is said earns none: what is said of
    /// it is all.
    pub fn of_agent(&self, agent: &AgentId, earned: Option<&Earned>) -> AgentStanding {
        let nothing = AgentRules::default();
        let rules = self.agents.get(agent).unwrap_or(&nothing);
        let own = rules.level.unwrap_or_else(|| self.default_level());
        let earned = earned.filter(|_| own != AccessLevel::Custom);
        let level = earned.map_or(own, |earned| earned.level);
        let mut standing = self.standing(level, rules, earned.and_then(|earned| earned.setback));
        if let Some(earned) = earned {
            let by_category = earned.by_category.clone();
            standing.permissions =
                standing.permissions.with_categories(&self.levels, by_category, &rules.said);
        }
        standing
    }

    /// What an agent at that level may do of which nothing else is said.
    pub fn of_level(&self, level: AccessLevel) -> AgentStanding {
        self.standing(level, &AgentRules::default(), None)
    }

    /// By what calls of such an agent are judged.
    pub fn judging<'a>(&'a self, agent: &'a AgentStanding) -> Standing<'a> {
        Standing { actions: &self.actions, permissions: &agent.permissions, autonomy: &agent.autonomy }
    }

    fn standing(
        &self,
        level: AccessLevel,
        rules: &AgentRules,
        setback: Option<crate::autonomy::Setback>,
    ) -> AgentStanding {
        let permissions =
            Permissions::new(&self.levels, level).with_tools(rules.allowed.clone(), rules.denied.clone());
        let constraints = permissions.constraints().with(&rules.said);
        AgentStanding {
            permissions: permissions.with_constraints(constraints),
            autonomy: self.autonomy_of(rules, setback),
        }
    }

    fn autonomy_of(&self, rules: &AgentRules, setback: Option<crate::autonomy::Setback>) -> Autonomy {
        let house = &self.autonomy;
        let department = rules.department.as_ref().and_then(|name| house.departments.get(name)).copied();
        let level = AutonomyLevel::resolve(rules.autonomy, department, house.level, rules.seniority);
        let level = setback.map_or(level, |setback| level.after(setback));
        // What the house has a person asked for, its agents' own lists don't take back.
        let mut lists = rules.lists.clone();
        lists.human_approval.extend(house.lists.human_approval.iter().cloned());
        let more = house.lists.auto_approve.iter().filter(|pattern| !lists.human_approval.contains(pattern));
        lists.auto_approve.extend(more.cloned());
        // After a setback nothing is done by itself that the preset has not.
        if setback.is_some() {
            lists.auto_approve.clear();
        }
        Autonomy::of_checked(&self.actions, level, &lists)
            .listed_by(&self.actions, &house.lists.human_approval, &rules.lists.human_approval)
            .set_back(setback.is_some())
    }
}

impl Default for AccessRules {
    fn default() -> Self {
        Self {
            actions: ActionRegistry::default(),
            levels: Levels::default(),
            default_level: None,
            agents: BTreeMap::new(),
            autonomy: HouseAutonomy {
                level: AutonomyLevel::Semi,
                departments: BTreeMap::new(),
                lists: AutonomyLists::default(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
