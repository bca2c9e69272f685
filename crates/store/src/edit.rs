//! Who writes something, and when; and what must be there for that.

use crate::database::{DatabaseError, Row, unreadable};
use belljar_contract::id::UserId;
use belljar_contract::scope::{Scope, Scopes};
use jiff::Timestamp;
use serde_json::Value;

/// Who writes something, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
}

/// Another version is there than the one that somebody wanted to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("version {expected} was to be changed, and there is {}", in_words(.found))]
pub struct VersionConflict {
    /// Which was wanted.
    pub expected: u64,
    /// Which is there.
    pub found: Option<u64>,
}

fn in_words(found: &Option<u64>) -> String {
    found.map_or_else(|| "none".to_owned(), |found| format!("version {found}"))
}

// === impl VersionConflict ===

impl VersionConflict {
    /// That there is not the version that is expected, if one is.
    pub(crate) fn check(expected: Option<u64>, found: Option<u64>) -> Result<(), Self> {
        match expected {
            Some(expected) if found != Some(expected) => Err(Self { expected, found }),
            _ => Ok(()),
        }
    }
}

/// The scopes, as statements are told them.
pub(crate) fn listed(scopes: &Scopes) -> String {
    Value::from(scopes.all().iter().map(Scope::key).collect::<Vec<_>>()).to_string()
}

/// A value as it is kept, unless it couldn't be read again: it may be too deep.
pub(crate) fn written(value: &Value) -> Option<String> {
    let text = value.to_string();
    (serde_json::from_str::<Value>(&text).ok().as_ref() == Some(value)).then_some(text)
}

pub(crate) fn value(row: &Row) -> Result<Value, DatabaseError> {
    serde_json::from_str(&row.text("value")?).map_err(|error| unreadable(error.into()))
}
