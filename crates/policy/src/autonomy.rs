//! Autonomy of agents: which actions require a user's approval (`docs/contracts/tools.md#t15`). Each level has a preset, and a
//! configuration can add lists.
//!
//! Lists can only require more approvals: an action in both lists requires one, and so does an action in neither.

mod presets;

use crate::action::{ActionRegistry, PatternError};
use belljar_contract::action::ActionType;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Autonomy of an agent; more is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutonomyLevel {
    /// Every action requires an approval.
    Locked,
    /// Reading needs no approval; changes do.
    Supervised,
    /// Working on a project needs no approval; actions beyond it do.
    Semi,
    /// No action requires an approval.
    Full,
}

/// Actions of an agent that require an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autonomy {
    level: AutonomyLevel,
    by_itself: BTreeSet<ActionType>,
    asked: BTreeSet<ActionType>,
    /// Actions that would need no approval without the `human_approval` lists.
    unless_listed: BTreeSet<ActionType>,
    by_house: BTreeSet<ActionType>,
    by_agent: BTreeSet<ActionType>,
    is_set_back: bool,
}

/// Reason why an action requires an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalReason {
    /// The general list `autonomy.human_approval`.
    House,
    /// The agent's own list `human_approval`.
    Agent,
    /// The preset of the autonomy level.
    Level,
    /// No list and no preset names the action.
    Unlisted,
}

/// Configured lists of action patterns, besides a preset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutonomyLists {
    /// Actions that need no approval.
    pub auto_approve: Vec<String>,
    /// Actions that require an approval.
    pub human_approval: Vec<String>,
}

/// Error in the lists: they contradict each other, or a pattern has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AutonomyError {
    /// A pattern is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A pattern is in both lists.
    #[error("{pattern:?} is in both lists")]
    InBoth {
        /// The pattern.
        pattern: String,
    },
    /// The other list requires an approval for all actions of a pattern.
    #[error("{pattern:?} has no effect: `human_approval` has all of it")]
    NoEffect {
        /// The pattern.
        pattern: String,
    },
}

/// Seniority of an agent, which limits its autonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seniority {
    /// Never gets full autonomy.
    Junior,
    /// No limit.
    Mid,
    /// No limit.
    Senior,
}

/// Event that lowers an agent's autonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setback {
    /// Too many of its actions fail.
    HighErrorRate,
    /// Its budget is used up.
    BudgetExhausted,
    /// A security incident happened.
    SecurityIncident,
}

// === impl Autonomy ===

impl Autonomy {
    /// Creates the autonomy of a preset with lists.
    ///
    /// # Errors
    /// [`AutonomyError`], for the first pattern that is wrong.
    pub fn new(
        registry: &ActionRegistry,
        level: AutonomyLevel,
        lists: &AutonomyLists,
    ) -> Result<Self, AutonomyError> {
        let mut human = BTreeSet::new();
        for pattern in &lists.human_approval {
            human.extend(registry.expand(pattern)?);
        }
        for pattern in &lists.auto_approve {
            if lists.human_approval.contains(pattern) {
                return Err(AutonomyError::InBoth { pattern: pattern.clone() });
            }
            if registry.expand(pattern)?.is_subset(&human) {
                return Err(AutonomyError::NoEffect { pattern: pattern.clone() });
            }
        }
        Ok(Self::of_checked(registry, level, lists))
    }

    /// Like [`Self::new`], for lists that were checked before. An invalid pattern has no effect in `auto_approve`; in
    /// `human_approval` it was refused before.
    pub(crate) fn of_checked(registry: &ActionRegistry, level: AutonomyLevel, lists: &AutonomyLists) -> Self {
        let preset = presets::of(level);
        let mut by_itself = expanded(registry, preset.auto_approve);
        let mut asked = expanded(registry, preset.human_approval);
        let said = |patterns: &[String]| expanded(registry, patterns.iter().map(String::as_str));
        let (auto, human) = (said(&lists.auto_approve), said(&lists.human_approval));
        // Lists replace the preset. Of the lists, the required approval wins.
        asked.retain(|action| !auto.contains(action));
        by_itself.extend(auto);
        let unless_listed = by_itself.clone();
        asked.extend(human.iter().cloned());
        by_itself.retain(|action| !asked.contains(action));
        let by_house = BTreeSet::new();
        Self { level, by_itself, asked, unless_listed, by_house, by_agent: human, is_set_back: false }
    }

    /// Notes which patterns of `human_approval` come from the general list and which from the agent's own.
    #[must_use]
    pub(crate) fn listed_by(self, registry: &ActionRegistry, house: &[String], agent: &[String]) -> Self {
        let of = |patterns: &[String]| expanded(registry, patterns.iter().map(String::as_str));
        Self { by_house: of(house), by_agent: of(agent), ..self }
    }

    /// Notes whether the agent has had a setback. After one its `auto_approve` has no effect.
    #[must_use]
    pub(crate) fn set_back(self, is_set_back: bool) -> Self {
        Self { is_set_back, ..self }
    }

    /// Returns the autonomy level.
    pub fn level(&self) -> AutonomyLevel {
        self.level
    }

    /// Returns true if an action requires an approval. An action that no list names does.
    pub fn asks(&self, action: &ActionType) -> bool {
        !self.by_itself.contains(action)
    }

    /// Returns the actions that need no approval.
    pub fn by_itself(&self) -> impl Iterator<Item = &ActionType> {
        self.by_itself.iter()
    }

    /// Returns the reason why an action requires an approval.
    pub fn asked_by(&self, action: &ActionType) -> ApprovalReason {
        if self.by_house.contains(action) {
            return ApprovalReason::House;
        }
        if self.by_agent.contains(action) {
            return ApprovalReason::Agent;
        }
        if self.asked.contains(action) { ApprovalReason::Level } else { ApprovalReason::Unlisted }
    }

    /// Returns whether the general `human_approval` list names the action, and whether the agent's own does.
    pub(crate) fn lists_with(&self, action: &ActionType) -> (bool, bool) {
        (self.by_house.contains(action), self.by_agent.contains(action))
    }

    /// Returns true if the action needs an `auto_approve` entry of the agent, whatever the `human_approval` lists contain.
    pub(crate) fn needs_auto_approve(&self, action: &ActionType) -> bool {
        !self.unless_listed.contains(action)
    }

    /// Returns true if the agent has had a setback.
    pub(crate) fn is_set_back(&self) -> bool {
        self.is_set_back
    }
}

fn expanded<'p>(
    registry: &ActionRegistry,
    patterns: impl IntoIterator<Item = &'p str>,
) -> BTreeSet<ActionType> {
    patterns.into_iter().filter_map(|pattern| registry.expand(pattern).ok()).flatten().collect()
}

// === impl AutonomyLevel ===

impl AutonomyLevel {
    /// All levels, the lowest first.
    pub const ALL: [Self; 4] = [Self::Locked, Self::Supervised, Self::Semi, Self::Full];

    /// Returns the name in configurations and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Supervised => "supervised",
            Self::Semi => "semi",
            Self::Full => "full",
        }
    }

    /// Returns the level of an agent: its own, else its department's, else the general one. A junior never gets full autonomy.
    pub fn resolve(
        own: Option<Self>,
        department: Option<Self>,
        house: Self,
        seniority: Option<Seniority>,
    ) -> Self {
        let said = own.or(department).unwrap_or(house);
        match seniority {
            Some(Seniority::Junior) => said.min(Self::Semi),
            _ => said,
        }
    }

    /// Returns the level after a setback, which is never higher than before.
    #[must_use]
    pub fn after(self, setback: Setback) -> Self {
        self.min(match setback {
            Setback::HighErrorRate | Setback::BudgetExhausted => Self::Supervised,
            Setback::SecurityIncident => Self::Locked,
        })
    }
}

impl fmt::Display for AutonomyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Seniority ===

impl Seniority {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Junior, Self::Mid, Self::Senior];

    /// Returns the name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Junior => "junior",
            Self::Mid => "mid",
            Self::Senior => "senior",
        }
    }
}

#[cfg(test)]
mod tests;
