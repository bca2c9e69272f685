//! Author and time of a write, and the version that it expects.

use crate::database::{DatabaseError, Row, unreadable};
use belljar_contract::id::UserId;
use belljar_contract::scope::{Scope, Scopes};
use jiff::Timestamp;
use serde_json::Value;

/// Author and time of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// User who writes.
    pub by: UserId,
    /// Time of the write.
    pub at: Timestamp,
}

/// The entry has another version than the one that was to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("version {expected} was to be changed, and there is {}", in_words(.found))]
pub struct VersionConflict {
    /// Version that was expected.
    pub expected: u64,
    /// Version that exists; `None` if there is no entry.
    pub found: Option<u64>,
}

fn in_words(found: &Option<u64>) -> String {
    found.map_or_else(|| "none".to_owned(), |found| format!("version {found}"))
}

// === impl VersionConflict ===

impl VersionConflict {
    /// Returns an error unless the found version is the expected one, if one is expected.
    pub(crate) fn check(expected: Option<u64>, found: Option<u64>) -> Result<(), Self> {
        match expected {
            Some(expected) if found != Some(expected) => Err(Self { expected, found }),
            _ => Ok(()),
        }
    }
}

/// Returns the scopes in the form that statements expect.
pub(crate) fn listed(scopes: &Scopes) -> String {
    Value::from(scopes.all().iter().map(Scope::key).collect::<Vec<_>>()).to_string()
}

/// Returns a value as JSON; `None` if it couldn't be read back, for example because it is nested too deeply.
pub(crate) fn written(value: &Value) -> Option<String> {
    let text = value.to_string();
    (serde_json::from_str::<Value>(&text).ok().as_ref() == Some(value)).then_some(text)
}

pub(crate) fn value(row: &Row) -> Result<Value, DatabaseError> {
    serde_json::from_str(&row.text("value")?).map_err(|error| unreadable(error.into()))
}
