//! Why a preference is not written, and how much there may be.

use crate::database::DatabaseError;
use crate::edit::VersionConflict;
use belljar_contract::key::Key;
use belljar_contract::preference::ValueType;
use belljar_contract::scope::Scope;
use std::fmt;

/// A preference is not written.
#[derive(Debug, thiserror::Error)]
pub enum PreferenceError {
    /// There is one already.
    #[error("there is a preference {key} of {scope} already")]
    Exists {
        /// Whose.
        scope: Scope,
        /// About what.
        key: Key,
    },
    /// There is none.
    #[error("there is no preference {key} of {scope}")]
    Missing {
        /// Whose.
        scope: Scope,
        /// About what.
        key: Key,
    },
    /// It was changed meanwhile.
    #[error(transparent)]
    Version(#[from] VersionConflict),
    /// The value isn't what it is said to be.
    #[error("the value is no {value_type}")]
    OtherType {
        /// What it is said to be.
        value_type: ValueType,
    },
    /// The value is nested too deep to be read again.
    #[error("the value is nested too deep")]
    Unwritable,
    /// It is too much.
    #[error("{limit} would be {would_be}, and may be {most}")]
    TooMuch {
        /// Of what.
        limit: Limit,
        /// How much it would be.
        would_be: u64,
        /// How much it may be.
        most: u64,
    },
    /// The database does not do what it should.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// How much there may be of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many preferences.
    pub entries: u64,
    /// How many bytes a value may have, as JSON.
    pub value_bytes: u64,
    /// How many characters all values may have together, as JSON.
    pub total_characters: u64,
}

/// One of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::entries`].
    Entries,
    /// [`Limits::value_bytes`].
    ValueBytes,
    /// [`Limits::total_characters`].
    TotalCharacters,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1_000, value_bytes: 64 << 10, total_characters: 256 << 10 }
    }
}

impl Limits {
    pub(super) fn check_one(&self, bytes: u64) -> Result<(), PreferenceError> {
        within(Limit::ValueBytes, bytes, self.value_bytes)
    }

    pub(super) fn check_all(&self, entries: u64, characters: u64) -> Result<(), PreferenceError> {
        within(Limit::Entries, entries, self.entries)?;
        within(Limit::TotalCharacters, characters, self.total_characters)
    }
}

fn within(limit: Limit, would_be: u64, most: u64) -> Result<(), PreferenceError> {
    if would_be > most { Err(PreferenceError::TooMuch { limit, would_be, most }) } else { Ok(()) }
}

// === impl Limit ===

impl Limit {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::ValueBytes => "value_bytes",
            Self::TotalCharacters => "total_characters",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
