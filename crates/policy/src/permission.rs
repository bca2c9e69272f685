//! Tools that an agent may call: first the denied ones are excluded, then the allowed ones and those of its level are included;
//! all others are denied (`docs/contracts/tools.md#t2.4`).

use crate::access::{ConstraintOverrides, Constraints, Levels};
use crate::tool::ToolPattern;
use belljar_contract::access::AccessLevel;
use belljar_contract::action::ActionType;
use belljar_contract::category::Category;
use belljar_contract::tool::ToolName;
use std::collections::{BTreeMap, BTreeSet};

/// Current permissions of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    level: AccessLevel,
    /// Levels of single categories, where trust gives another one.
    by_category: BTreeMap<Category, AccessLevel>,
    categories: BTreeSet<Category>,
    allowed: ToolRules,
    denied: ToolRules,
    constraints: Constraints,
    /// Constraints of categories with a level of their own.
    by_category_constraints: BTreeMap<Category, Constraints>,
}

/// Tool names, exact or by prefix. They are compared without case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    exact: BTreeSet<String>,
    beginnings: Vec<ToolPattern>,
}

/// Facts about a tool that decisions need.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts<'a> {
    /// Name of the tool.
    pub name: &'a ToolName,
    /// Category of the tool.
    pub category: Category,
    /// Action of its calls.
    pub action: &'a ActionType,
    /// True if calls leave the host.
    pub reaches_out: bool,
}

/// Reason why a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionBasis {
    /// The agent's allowlist names the tool.
    Allowed,
    /// The level includes its category.
    Level(AccessLevel),
    /// The tool only lists tools.
    Discovery,
}

/// Reason why a tool may not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionDenial {
    /// The agent's denylist names the tool.
    Denied,
    /// The level doesn't include its category.
    Category {
        /// Level of the agent for this category.
        level: AccessLevel,
        /// Category of the tool.
        category: Category,
    },
}

/// Tools that only list tools. Every agent may call them.
const DISCOVERY: [&str; 3] = ["list_tools", "load_tool", "load_tool_resource"];
const DISCOVERY_SPACE: &str = "help.";

// === impl ToolRules ===

impl ToolRules {
    /// Creates rules from patterns.
    pub fn new(patterns: impl IntoIterator<Item = ToolPattern>) -> Self {
        let mut rules = Self::default();
        for pattern in patterns {
            let pattern = pattern.folded();
            match pattern.is_exact() {
                true => drop(rules.exact.insert(pattern.to_string())),
                false => rules.beginnings.push(pattern),
            }
        }
        rules
    }

    /// Returns true if a pattern matches the tool.
    pub fn name(&self, tool: &ToolName) -> bool {
        let folded = tool.as_str().to_ascii_lowercase();
        self.exact.contains(folded.as_str())
            || self.beginnings.iter().any(|pattern| pattern.matches_text(&folded))
    }

    /// Returns true if there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.beginnings.is_empty()
    }

    /// Returns the first pattern that is in both.
    pub fn shared(&self, other: &Self) -> Option<String> {
        let exact = self.exact.intersection(&other.exact).next().cloned();
        let beginning = || {
            let both = self.beginnings.iter().find(|pattern| other.beginnings.contains(pattern));
            both.map(ToString::to_string)
        };
        exact.or_else(beginning)
    }
}

// === impl Permissions ===

impl Permissions {
    /// Returns the permissions of an agent at that level.
    pub fn new(levels: &Levels, level: AccessLevel) -> Self {
        let rules = levels.of(level);
        Self {
            level,
            by_category: BTreeMap::new(),
            categories: rules.categories.clone(),
            allowed: ToolRules::default(),
            denied: ToolRules::default(),
            constraints: rules.constraints.clone(),
            by_category_constraints: BTreeMap::new(),
        }
    }

    /// Sets the allowed and the denied tools.
    pub fn with_tools(self, allowed: ToolRules, denied: ToolRules) -> Self {
        Self { allowed, denied, ..self }
    }

    /// Sets levels for single categories: their tools have that level's constraints, with the agent's overrides applied.
    pub fn with_categories(
        self,
        levels: &Levels,
        by_category: BTreeMap<Category, AccessLevel>,
        said: &ConstraintOverrides,
    ) -> Self {
        let mut categories = self.categories;
        let mut by_category_constraints = BTreeMap::new();
        for (category, level) in &by_category {
            let rules = levels.of(*level);
            match rules.categories.contains(category) {
                true => categories.insert(*category),
                false => categories.remove(category),
            };
            by_category_constraints.insert(*category, rules.constraints.with(said));
        }
        Self { categories, by_category, by_category_constraints, ..self }
    }

    /// Sets the constraints.
    pub fn with_constraints(self, constraints: Constraints) -> Self {
        Self { constraints, ..self }
    }

    /// Returns the general level.
    pub fn level(&self) -> AccessLevel {
        self.level
    }

    /// Returns the level for tools of a category.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        self.by_category.get(&category).copied().unwrap_or(self.level)
    }

    /// Returns the categories whose tools may be called.
    pub fn categories(&self) -> &BTreeSet<Category> {
        &self.categories
    }

    /// Returns the constraints of categories without a level of their own.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// Returns the constraints of calls of a category's tools.
    pub fn constraints_for(&self, category: Category) -> &Constraints {
        self.by_category_constraints.get(&category).unwrap_or(&self.constraints)
    }

    /// Returns the categories with a level of their own.
    pub fn by_category(&self) -> &BTreeMap<Category, AccessLevel> {
        &self.by_category
    }

    /// Checks that a tool may be called.
    ///
    /// # Errors
    /// [`PermissionDenial`].
    pub fn check(&self, tool: &ToolFacts<'_>) -> Result<PermissionBasis, PermissionDenial> {
        let level = self.level_for(tool.category);
        if self.denied.name(tool.name) {
            return Err(PermissionDenial::Denied);
        }
        if self.allowed.name(tool.name) {
            return Ok(PermissionBasis::Allowed);
        }
        if is_discovery(tool.name) {
            return Ok(PermissionBasis::Discovery);
        }
        match self.categories.contains(&tool.category) {
            true => Ok(PermissionBasis::Level(level)),
            false => Err(PermissionDenial::Category { level, category: tool.category }),
        }
    }
}

fn is_discovery(tool: &ToolName) -> bool {
    let name = tool.as_str();
    DISCOVERY.contains(&name) || name.strip_prefix(DISCOVERY_SPACE).is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests;
