//! Action types: what an agent does, as `category:action`, whichever tool does it (`docs/contracts/tools.md#t15`).

mod leaf;

pub use leaf::BuiltInAction;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An action type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionType {
    /// A built-in action type.
    BuiltIn(BuiltInAction),
    /// An action type that a configuration has registered.
    Custom(CustomAction),
}

/// Name of an action type that isn't built in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomAction(String);

/// Possible damage of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes that are easily undone.
    Low,
    /// Changes that cost work to undo.
    Medium,
    /// Changes outside of the workspace.
    High,
    /// Changes that can't be undone and affect everyone.
    Critical,
}

/// The text is no action type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no `category:action` of a-z, 0-9 and `_`, each beginning with a letter, at most 128 characters long"
)]
pub struct InvalidActionTypeError;

/// Maximum length of a name.
const LONGEST: usize = 128;

// === impl ActionType ===

impl ActionType {
    /// The one of that name, built in or not.
    ///
    /// # Errors
    /// [`InvalidActionTypeError`] when it can't be the name of one.
    pub fn parse(text: &str) -> Result<Self, InvalidActionTypeError> {
        if let Some(leaf) = BuiltInAction::named(text) {
            return Ok(Self::BuiltIn(leaf));
        }
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let is_one =
            text.split_once(':').is_some_and(|(category, action)| is_word(category) && is_word(action));
        match is_one && text.len() <= LONGEST {
            true => Ok(Self::Custom(CustomAction(text.to_owned()))),
            false => Err(InvalidActionTypeError),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::BuiltIn(leaf) => leaf.as_str(),
            Self::Custom(CustomAction(name)) => name,
        }
    }

    /// Returns the part before the colon.
    pub fn category(&self) -> &str {
        self.as_str().split_once(':').map_or("", |(category, _)| category)
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<BuiltInAction> for ActionType {
    fn from(leaf: BuiltInAction) -> Self {
        Self::BuiltIn(leaf)
    }
}

impl Serialize for ActionType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ActionType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

// === impl Risk ===

impl Risk {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Its name on the wire and in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_type_requires_two_words_and_one_colon() {
        assert_eq!(ActionType::parse("code:read"), Ok(ActionType::BuiltIn(BuiltInAction::CodeRead)));
        let custom = ActionType::parse("acme:rotate_2").unwrap();
        assert_eq!((custom.as_str(), custom.category()), ("acme:rotate_2", "acme"));
        let long = format!("a:{}", "b".repeat(LONGEST));
        for none in [
            "", ":", "a:", ":b", "a", "a:b:c", "A:b", "a:B", "a: b", "a:b ", "1a:b", "a:-", "a:b*", "ä:b",
            &long,
        ] {
            assert_eq!(ActionType::parse(none), Err(InvalidActionTypeError), "{none:?}");
        }
    }

    #[test]
    fn action_type_serializes_as_its_name() {
        let read: ActionType = serde_json::from_str("\"db:mutate\"").unwrap();
        assert_eq!(read, BuiltInAction::DbMutate.into());
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"db:mutate\"");
        assert!(serde_json::from_str::<ActionType>("\"db\"").is_err());
    }
}
