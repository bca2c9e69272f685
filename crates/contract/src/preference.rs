//! Preferences: values by key, each for one scope.

use crate::id::UserId;
use crate::key::Key;
use crate::scope::Scope;
use jiff::Timestamp;
use serde_json::Value;
use std::fmt;

/// A preference, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Preference {
    /// Number in the order of creation.
    pub id: u64,
    /// Scope that the preference is for.
    pub scope: Scope,
    /// Key of the preference.
    pub key: Key,
    /// Value. `null` hides the values of lower precedence.
    pub value: Value,
    /// Declared type of the value.
    pub value_type: ValueType,
    /// Version; each write increments it.
    pub version: u64,
    /// Time of the last write.
    pub updated_at: Timestamp,
    /// User who made the last write.
    pub updated_by: UserId,
}

/// Declared type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// Members by name.
    Object,
    /// A list.
    Array,
}

// === impl ValueType ===

impl ValueType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::String, Self::Number, Self::Boolean, Self::Object, Self::Array];

    /// Returns true if the value has this type. `null` has every type.
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

    /// Returns the type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
