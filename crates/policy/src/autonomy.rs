//! What an agent does by itself, and what a person has to say yes to (`spec/3 §Action Type System`): a preset by level, and what a
//! house says besides.
//!
//! A yes that is asked for can only be asked for in more cases: what is in both lists takes one, and so does what is in neither.

mod presets;

use crate::action::{ActionRegistry, PatternError};
use belljar_contract::action::ActionType;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// How much an agent does by itself; more is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutonomyLevel {
    /// Nothing.
    Locked,
    /// It looks, and asks before it changes anything.
    Supervised,
    /// It works on a project, and asks before anything leaves it.
    Semi,
    /// Everything.
    Full,
}

/// What of an agent's actions takes a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autonomy {
    level: AutonomyLevel,
    by_itself: BTreeSet<ActionType>,
    asked: BTreeSet<ActionType>,
    /// What would need no yes if no `human_approval` list said so.
    unless_listed: BTreeSet<ActionType>,
    by_house: BTreeSet<ActionType>,
    by_agent: BTreeSet<ActionType>,
    is_set_back: bool,
}

/// Why an action takes a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// The house's list `autonomy.human_approval`.
    House,
    /// The agent's own list `human_approval`.
    Agent,
    /// The preset of the autonomy level.
    Level,
    /// No list and no preset names it.
    Unlisted,
}

/// What is said besides a preset: patterns of action types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutonomyLists {
    /// What needs no yes.
    pub auto_approve: Vec<String>,
    /// What does.
    pub human_approval: Vec<String>,
}

/// Two lists that can't both hold, or that mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AutonomyError {
    /// A pattern is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// It stands in both.
    #[error("{pattern:?} is in both lists")]
    InBoth {
        /// The pattern.
        pattern: String,
    },
    /// All that it means takes a yes by the other list.
    #[error("{pattern:?} has no effect: `human_approval` has all of it")]
    NoEffect {
        /// The pattern.
        pattern: String,
    },
}

/// Who may not be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seniority {
    /// Never left alone altogether.
    Junior,
    /// As anybody.
    Mid,
    /// As anybody.
    Senior,
}

/// What makes an agent do less by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setback {
    /// Too much of what it does fails.
    HighErrorRate,
    /// It has spent what it had.
    BudgetExhausted,
    /// Something happened.
    SecurityIncident,
}

// === impl Autonomy ===

impl Autonomy {
    /// A preset, with what is said besides.
    ///
    /// # Errors
    /// [`AutonomyError`] for the first pattern that is wrong.
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

    /// The same of lists that have been looked at. A pattern that means nothing has no effect among what needs no yes, and nothing
    /// gets past it among what does: there it was refused before.
    pub(crate) fn of_checked(registry: &ActionRegistry, level: AutonomyLevel, lists: &AutonomyLists) -> Self {
        let preset = presets::of(level);
        let mut by_itself = expanded(registry, preset.auto_approve);
        let mut asked = expanded(registry, preset.human_approval);
        let said = |patterns: &[String]| expanded(registry, patterns.iter().map(String::as_str));
        let (auto, human) = (said(&lists.auto_approve), said(&lists.human_approval));
        // What is said replaces what the preset does; of what is said itself, the yes wins.
        asked.retain(|action| !auto.contains(action));
        by_itself.extend(auto);
        let unless_listed = by_itself.clone();
        asked.extend(human.iter().cloned());
        by_itself.retain(|action| !asked.contains(action));
        let by_house = BTreeSet::new();
        Self { level, by_itself, asked, unless_listed, by_house, by_agent: human, is_set_back: false }
    }

    /// The same, where these patterns of `human_approval` are the house's and those the agent's own.
    #[must_use]
    pub(crate) fn listed_by(self, registry: &ActionRegistry, house: &[String], agent: &[String]) -> Self {
        let of = |patterns: &[String]| expanded(registry, patterns.iter().map(String::as_str));
        Self { by_house: of(house), by_agent: of(agent), ..self }
    }

    /// The same of an agent that has been set back, or has not: after a setback its `auto_approve` has no effect.
    #[must_use]
    pub(crate) fn set_back(self, is_set_back: bool) -> Self {
        Self { is_set_back, ..self }
    }

    /// How much it does by itself.
    pub fn level(&self) -> AutonomyLevel {
        self.level
    }

    /// Whether an action takes a yes. One of which nobody has said anything does.
    pub fn asks(&self, action: &ActionType) -> bool {
        !self.by_itself.contains(action)
    }

    /// What it does by itself.
    pub fn by_itself(&self) -> impl Iterator<Item = &ActionType> {
        self.by_itself.iter()
    }

    /// Why an action takes a yes that does.
    pub fn asked_by(&self, action: &ActionType) -> AskedBy {
        if self.by_house.contains(action) {
            return AskedBy::House;
        }
        if self.by_agent.contains(action) {
            return AskedBy::Agent;
        }
        if self.asked.contains(action) { AskedBy::Level } else { AskedBy::Unlisted }
    }

    /// Which `human_approval` lists name it: the house's, the agent's.
    pub(crate) fn lists_with(&self, action: &ActionType) -> (bool, bool) {
        (self.by_house.contains(action), self.by_agent.contains(action))
    }

    /// Whether it takes an `auto_approve` of the agent, besides what the lists say.
    pub(crate) fn needs_auto_approve(&self, action: &ActionType) -> bool {
        !self.unless_listed.contains(action)
    }

    /// Whether the agent has been set back.
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
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Locked, Self::Supervised, Self::Semi, Self::Full];

    /// Its name in configurations and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Supervised => "supervised",
            Self::Semi => "semi",
            Self::Full => "full",
        }
    }

    /// That of an agent: its own, else that of its department, else that of the house. No junior is left alone altogether.
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

    /// That of an agent which has had a setback: never more than before.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Junior, Self::Mid, Self::Senior];

    /// Its name in configurations.
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
