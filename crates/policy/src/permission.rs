//! Which tools an agent may call: what is denied it, then what is allowed it, then what its level has, and otherwise none
//! (`spec/3 §Tool Execution Model`).

use crate::access::{ConstraintOverrides, Constraints, Levels};
use crate::tool::ToolPattern;
use belljar_contract::access::AccessLevel;
use belljar_contract::action::ActionType;
use belljar_contract::category::Category;
use belljar_contract::tool::ToolName;
use std::collections::{BTreeMap, BTreeSet};

/// What one agent may do, as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    level: AccessLevel,
    /// Where trust has another level for a category.
    by_category: BTreeMap<Category, AccessLevel>,
    categories: BTreeSet<Category>,
    allowed: ToolRules,
    denied: ToolRules,
    constraints: Constraints,
    /// Those of categories with a level of their own.
    by_category_constraints: BTreeMap<Category, Constraints>,
}

/// Names of tools, exact or by their beginnings. However they are written, small letters and large ones are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRules {
    exact: BTreeSet<String>,
    beginnings: Vec<ToolPattern>,
}

/// What has to be known of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts<'a> {
    /// Its name.
    pub name: &'a ToolName,
    /// What kind of thing it does.
    pub category: Category,
    /// What an agent does by it.
    pub action: &'a ActionType,
    /// Whether calls leave the host.
    pub reaches_out: bool,
}

/// Why a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// It is named among those that this agent may call.
    Allowed,
    /// The level has its category.
    Level(AccessLevel),
    /// It tells which tools there are, and nothing else.
    Discovery,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// It is named among those that this agent may not call.
    Denied,
    /// The level has no tools of its category.
    Category {
        /// The level that counts for it.
        level: AccessLevel,
        /// The category.
        category: Category,
    },
}

/// The tools that tell which tools there are: whoever may call nothing may ask that.
const DISCOVERY: [&str; 3] = ["list_tools", "load_tool", "load_tool_resource"];
const DISCOVERY_SPACE: &str = "help.";

// === impl ToolRules ===

impl ToolRules {
    /// Those that these name.
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

    /// Whether one of them names that tool.
    pub fn name(&self, tool: &ToolName) -> bool {
        let folded = tool.as_str().to_ascii_lowercase();
        self.exact.contains(folded.as_str())
            || self.beginnings.iter().any(|pattern| pattern.matches_text(&folded))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.beginnings.is_empty()
    }

    /// The first that both have, exactly so.
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
    /// Those of an agent at that level.
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

    /// The same, with these tools besides, and without those.
    pub fn with_tools(self, allowed: ToolRules, denied: ToolRules) -> Self {
        Self { allowed, denied, ..self }
    }

    /// The same, with these levels where they are about a category: its tools have that level's constraints, with what is said of the
    /// agent besides.
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

    /// The same, with these constraints.
    pub fn with_constraints(self, constraints: Constraints) -> Self {
        Self { constraints, ..self }
    }

    /// The level.
    pub fn level(&self) -> AccessLevel {
        self.level
    }

    /// The level that counts for tools of a category.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        self.by_category.get(&category).copied().unwrap_or(self.level)
    }

    /// The categories whose tools may be called.
    pub fn categories(&self) -> &BTreeSet<Category> {
        &self.categories
    }

    /// What holds for calls of categories without a level of their own.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// What holds for calls of tools of a category.
    pub fn constraints_for(&self, category: Category) -> &Constraints {
        self.by_category_constraints.get(&category).unwrap_or(&self.constraints)
    }

    /// The categories with a level of their own.
    pub fn by_category(&self) -> &BTreeMap<Category, AccessLevel> {
        &self.by_category
    }

    /// Whether that tool may be called.
    ///
    /// # Errors
    /// [`Lacking`].
    pub fn check(&self, tool: &ToolFacts<'_>) -> Result<Basis, Lacking> {
        let level = self.level_for(tool.category);
        if self.denied.name(tool.name) {
            return Err(Lacking::Denied);
        }
        if self.allowed.name(tool.name) {
            return Ok(Basis::Allowed);
        }
        if is_discovery(tool.name) {
            return Ok(Basis::Discovery);
        }
        match self.categories.contains(&tool.category) {
            true => Ok(Basis::Level(level)),
            false => Err(Lacking::Category { level, category: tool.category }),
        }
    }
}

fn is_discovery(tool: &ToolName) -> bool {
    let name = tool.as_str();
    DISCOVERY.contains(&name) || name.strip_prefix(DISCOVERY_SPACE).is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests;
