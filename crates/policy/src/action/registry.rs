//! The action types of one house: those that are built in, and those that its configuration adds.

use super::risk::{UNSAID, weighed};
use belljar_contract::action::{ActionType, Leaf, Risk};
use belljar_contract::yaml::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Which action types there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRegistry {
    all: BTreeMap<ActionType, Known>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    risk: Risk,
    why: String,
}

/// An action type that isn't built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomRow {
    /// Its name.
    pub action: ActionType,
    /// How much may go wrong by it; much, where nothing is said.
    pub risk: Option<Risk>,
    /// Why that is thought.
    pub why: Option<String>,
}

/// An action type can't be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterActionError {
    /// There is one of that name.
    #[error("{action} is there already")]
    Taken {
        /// The name.
        action: ActionType,
    },
}

/// A pattern means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is no action type and no category of them{}", Hint(nearest.as_deref()))]
pub struct PatternError {
    /// What was written.
    pub pattern: String,
    /// What was probably meant.
    pub nearest: Option<String>,
}

struct Hint<'a>(Option<&'a str>);

/// Every action type.
pub(super) const ALL: &str = "all";

// === impl ActionRegistry ===

impl ActionRegistry {
    /// Those that are built in, and these.
    ///
    /// # Errors
    /// [`RegisterActionError`] for the first name that is taken.
    pub fn with(custom: impl IntoIterator<Item = CustomRow>) -> Result<Self, RegisterActionError> {
        custom.into_iter().try_fold(Self::default(), Self::and)
    }

    /// The same, and this one.
    ///
    /// # Errors
    /// [`RegisterActionError`] when its name is taken.
    pub fn and(mut self, CustomRow { action, risk, why }: CustomRow) -> Result<Self, RegisterActionError> {
        if self.all.contains_key(&action) {
            return Err(RegisterActionError::Taken { action });
        }
        let why = why.unwrap_or_else(|| "nobody has said how much may go wrong by it".to_owned());
        self.all.insert(action, Known { risk: risk.unwrap_or(UNSAID), why });
        Ok(self)
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &ActionType> {
        self.all.keys()
    }

    /// Whether it is one of them.
    pub fn knows(&self, action: &ActionType) -> bool {
        self.all.contains_key(action)
    }

    /// How much may go wrong by it; much, if it isn't known.
    pub fn risk(&self, action: &ActionType) -> Risk {
        self.all.get(action).map_or(UNSAID, |known| known.risk)
    }

    /// Why that is thought.
    pub fn why(&self, action: &ActionType) -> &str {
        self.all.get(action).map_or("it isn't known here", |known| &known.why)
    }

    /// What a pattern means: `all`, a category and with it all of its actions, or one action.
    ///
    /// # Errors
    /// [`PatternError`] when it is none of these; with what was probably meant.
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
        let known = |leaf: Leaf| {
            let weighed = weighed(leaf);
            (leaf.into(), Known { risk: weighed.risk, why: weighed.why.to_owned() })
        };
        Self { all: Leaf::ALL.into_iter().map(known).collect() }
    }
}

impl std::fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, "; {name:?} is one"))
    }
}
