//! Preferences: values by keys, each for somebody or something.

use crate::id::UserId;
use crate::key::Key;
use crate::scope::Scope;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt;

/// A preference, as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Preference {
    /// Its place among those that were ever made.
    pub id: u64,
    /// Whom it is for.
    pub scope: Scope,
    /// What it is about.
    pub key: Key,
    /// The value. `null` hides those that are further away.
    pub value: Value,
    /// What the value is said to be.
    pub value_type: ValueType,
    /// How often it was written.
    pub version: u64,
    /// When it was written last.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: UserId,
}

/// What a value is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// Members by names.
    Object,
    /// A list.
    Array,
}

// === impl ValueType ===

impl ValueType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::String, Self::Number, Self::Boolean, Self::Object, Self::Array];

    /// Whether the value is what it is said to be. `null` is, of every type.
    pub fn is_of(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::String(_) => self == Self::String,
            Value::Number(_) => self == Self::Number,
            Value::Bool(_) => self == Self::Boolean,
            Value::Object(_) => self == Self::Object,
            Value::Array(_) => self == Self::Array,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
