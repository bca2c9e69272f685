//! Configured access rules: levels, agents by name, and autonomy.

mod config;

use super::UnknownAgentError;
use super::constraints::ConstraintOverrides;
use super::levels::Levels;
use crate::action::ActionRegistry;
use crate::autonomy::{Autonomy, AutonomyLevel, AutonomyLists, Seniority};
use crate::permission::{Permissions, ToolRules};
use crate::verdict::JudgementContext;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use std::collections::BTreeMap;

/// Access rules of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRules {
    actions: ActionRegistry,
    levels: Levels,
    /// `None` if it isn't configured.
    default_level: Option<AccessLevel>,
    agents: BTreeMap<AgentId, AgentRules>,
    autonomy: DefaultAutonomy,
}

/// Autonomy of agents without rules of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DefaultAutonomy {
    level: AutonomyLevel,
    departments: BTreeMap<String, AutonomyLevel>,
    lists: AutonomyLists,
}

/// Rules of one agent.
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

/// Levels that an agent has earned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarnedLevels {
    /// General level.
    pub level: AccessLevel,
    /// Levels for tools of a category, where they differ.
    pub by_category: BTreeMap<Category, AccessLevel>,
    /// Latest setback.
    pub setback: Option<crate::autonomy::Setback>,
}

/// Current permissions and autonomy of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAuthority {
    /// Tools that it may call, with the constraints of the calls.
    pub permissions: Permissions,
    /// Actions that require an approval.
    pub autonomy: Autonomy,
}

// === impl AccessRules ===

impl AccessRules {
    /// Returns all known actions.
    pub fn actions(&self) -> &ActionRegistry {
        &self.actions
    }

    /// Returns the rules of the levels.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Returns the agents that have rules of their own.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.agents.keys()
    }

    /// Returns true if the agent has rules of its own.
    pub fn knows(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    /// Returns the level of agents without rules of their own.
    pub fn default_level(&self) -> AccessLevel {
        self.default_level.unwrap_or(AccessLevel::Standard)
    }

    /// Returns true if the agent has rules of its own, or a level is configured for agents that aren't listed.
    pub fn covers(&self, agent: &AgentId) -> bool {
        self.default_level.is_some() || self.knows(agent)
    }

    /// Returns the error for an agent that isn't covered. It may suggest the name that was meant.
    pub fn unknown(&self, agent: &AgentId) -> UnknownAgentError {
        UnknownAgentError::of(agent, self)
    }

    /// Returns the level that an agent begins at.
    pub fn level_of(&self, agent: &AgentId) -> AccessLevel {
        self.agents.get(agent).and_then(|rules| rules.level).unwrap_or_else(|| self.default_level())
    }

    /// Returns the permissions and autonomy of that agent, at its earned level if it has one. A `custom` agent earns no level:
    /// only its configured rules count.
    pub fn of_agent(&self, agent: &AgentId, earned: Option<&EarnedLevels>) -> AgentAuthority {
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

    /// Returns the permissions and autonomy of an agent at that level without rules of its own.
    pub fn of_level(&self, level: AccessLevel) -> AgentAuthority {
        self.standing(level, &AgentRules::default(), None)
    }

    /// Returns what calls of such an agent are judged by.
    pub fn judging<'a>(&'a self, agent: &'a AgentAuthority) -> JudgementContext<'a> {
        JudgementContext {
            actions: &self.actions,
            permissions: &agent.permissions,
            autonomy: &agent.autonomy,
        }
    }

    fn standing(
        &self,
        level: AccessLevel,
        rules: &AgentRules,
        setback: Option<crate::autonomy::Setback>,
    ) -> AgentAuthority {
        let permissions =
            Permissions::new(&self.levels, level).with_tools(rules.allowed.clone(), rules.denied.clone());
        let constraints = permissions.constraints().with(&rules.said);
        AgentAuthority {
            permissions: permissions.with_constraints(constraints),
            autonomy: self.autonomy_of(rules, setback),
        }
    }

    fn autonomy_of(&self, rules: &AgentRules, setback: Option<crate::autonomy::Setback>) -> Autonomy {
        let house = &self.autonomy;
        let department = rules.department.as_ref().and_then(|name| house.departments.get(name)).copied();
        let level = AutonomyLevel::resolve(rules.autonomy, department, house.level, rules.seniority);
        let level = setback.map_or(level, |setback| level.after(setback));
        // An agent's own lists can't take back an approval that the general lists require.
        let mut lists = rules.lists.clone();
        lists.human_approval.extend(house.lists.human_approval.iter().cloned());
        let more = house.lists.auto_approve.iter().filter(|pattern| !lists.human_approval.contains(pattern));
        lists.auto_approve.extend(more.cloned());
        // After a setback the agent does nothing by itself beyond the preset.
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
            autonomy: DefaultAutonomy {
                level: AutonomyLevel::Semi,
                departments: BTreeMap::new(),
                lists: AutonomyLists::default(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
