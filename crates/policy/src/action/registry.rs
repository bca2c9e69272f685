//! Action types: the built-in ones and those that a configuration adds.

use super::risk::{UNSAID, weighed};
use belljar_contract::action::{ActionType, BuiltInAction, Risk};
use belljar_contract::yaml::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// All known action types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRegistry {
    all: BTreeMap<ActionType, KnownAction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownAction {
    risk: Risk,
    why: String,
}

/// Action type that isn't built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAction {
    /// Name of the action.
    pub action: ActionType,
    /// Risk of the action. Default: high.
    pub risk: Option<Risk>,
    /// Reason for the risk.
    pub why: Option<String>,
}

/// Reason why an action type can't be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterActionError {
    /// The name is taken.
    #[error("{action} is already registered")]
    Taken {
        /// The name.
        action: ActionType,
    },
}

/// The pattern matches no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is neither an action type nor a category{}", NearestPattern(nearest.as_deref()))]
pub struct PatternError {
    /// Pattern as it was written.
    pub pattern: String,
    /// Name that was probably meant.
    pub nearest: Option<String>,
}

struct NearestPattern<'a>(Option<&'a str>);

/// Pattern that matches every action type.
pub(super) const ALL: &str = "all";

// === impl ActionRegistry ===

impl ActionRegistry {
    /// Returns the built-in action types and these.
    ///
    /// # Errors
    /// [`RegisterActionError`], for the first name that is taken.
    pub fn with(custom: impl IntoIterator<Item = RegisteredAction>) -> Result<Self, RegisterActionError> {
        custom.into_iter().try_fold(Self::default(), Self::and)
    }

    /// Adds an action type.
    ///
    /// # Errors
    /// [`RegisterActionError`], if its name is taken.
    pub fn and(
        mut self,
        RegisteredAction { action, risk, why }: RegisteredAction,
    ) -> Result<Self, RegisterActionError> {
        if self.all.contains_key(&action) {
            return Err(RegisterActionError::Taken { action });
        }
        let why = why.unwrap_or_else(|| "no risk is configured for it".to_owned());
        self.all.insert(action, KnownAction { risk: risk.unwrap_or(UNSAID), why });
        Ok(self)
    }

    /// Returns all action types, by name.
    pub fn all(&self) -> impl Iterator<Item = &ActionType> {
        self.all.keys()
    }

    /// Returns true if the action type is known.
    pub fn knows(&self, action: &ActionType) -> bool {
        self.all.contains_key(action)
    }

    /// Returns the risk of an action; high if it is unknown.
    pub fn risk(&self, action: &ActionType) -> Risk {
        self.all.get(action).map_or(UNSAID, |known| known.risk)
    }

    /// Returns the reason for the risk.
    pub fn why(&self, action: &ActionType) -> &str {
        self.all.get(action).map_or("it isn't known here", |known| &known.why)
    }

    /// Returns the actions that a pattern matches: `all`, a category with all its actions, or one action.
    ///
    /// # Errors
    /// [`PatternError`], if it matches none; with the name that was probably meant.
    pub fn expand(&self, pattern: &str) -> Result<BTreeSet<ActionType>, PatternError> {
        let meant: BTreeSet<_> = match ActionType::parse(pattern) {
            Ok(action) => self.all.keys().filter(|known| **known == action).cloned().collect(),
            Err(_) if pattern == ALL => self.all.keys().cloned().collect(),
            Err(_) => self.all.keys().filter(|known| known.category() == pattern).cloned().collect(),
        };
        match meant.is_empty() {
            false => Ok(meant),
            true => Err(PatternError { pattern: pattern.to_owned(), nearest: self.nearest(pattern) }),
        }
    }

    fn nearest(&self, pattern: &str) -> Option<String> {
        let categories: BTreeSet<&str> = self.all.keys().map(ActionType::category).collect();
        let names = self.all.keys().map(ActionType::as_str).chain(categories).chain([ALL]);
        nearest(pattern, &names.collect::<Vec<_>>()).map(ToOwned::to_owned)
    }
}

impl Default for ActionRegistry {
    fn default() -> Self {
        let known = |leaf: BuiltInAction| {
            let weighed = weighed(leaf);
            (leaf.into(), KnownAction { risk: weighed.risk, why: weighed.why.to_owned() })
        };
        Self { all: BuiltInAction::ALL.into_iter().map(known).collect() }
    }
}

impl std::fmt::Display for NearestPattern<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, "; {name:?} is one"))
    }
}
