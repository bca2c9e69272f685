//! Errors of writing preferences, and their limits.

use crate::database::DatabaseError;
use crate::edit::VersionConflict;
use belljar_contract::key::Key;
use belljar_contract::preference::ValueType;
use belljar_contract::scope::Scope;
use std::fmt;

/// A preference is not written.
#[derive(Debug, thiserror::Error)]
pub enum PreferenceError {
    /// The preference exists already.
    #[error("there is a preference {key} of {scope} already")]
    Exists {
        /// Scope of the preference.
        scope: Scope,
        /// Key of the preference.
        key: Key,
    },
    /// The preference doesn't exist.
    #[error("there is no preference {key} of {scope}")]
    Missing {
        /// Scope of the preference.
        scope: Scope,
        /// Key of the preference.
        key: Key,
    },
    /// The preference was changed meanwhile.
    #[error(transparent)]
    Version(#[from] VersionConflict),
    /// The value doesn't have the declared type.
    #[error("the value is no {value_type}")]
    OtherType {
        /// Declared type.
        value_type: ValueType,
    },
    /// The value is nested too deep to be read back.
    #[error("the value is nested too deep")]
    Unwritable,
    /// A limit would be exceeded.
    #[error("{limit} would be {would_be}, and may be {most}")]
    TooMuch {
        /// The limit.
        limit: PreferenceLimit,
        /// Amount that would be reached.
        would_be: u64,
        /// Maximum amount.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Limits for each scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreferenceLimits {
    /// Maximum number of preferences.
    pub entries: u64,
    /// Maximum length of a value as JSON, in bytes.
    pub value_bytes: u64,
    /// Maximum total length of all values as JSON, in characters.
    pub total_characters: u64,
}

/// Names one of [`PreferenceLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreferenceLimit {
    /// [`PreferenceLimits::entries`].
    Entries,
    /// [`PreferenceLimits::value_bytes`].
    ValueBytes,
    /// [`PreferenceLimits::total_characters`].
    TotalCharacters,
}

// === impl PreferenceLimits ===

impl Default for PreferenceLimits {
    fn default() -> Self {
        Self { entries: 1_000, value_bytes: 64 << 10, total_characters: 256 << 10 }
    }
}

impl PreferenceLimits {
    pub(super) fn check_one(&self, bytes: u64) -> Result<(), PreferenceError> {
        within(PreferenceLimit::ValueBytes, bytes, self.value_bytes)
    }

    pub(super) fn check_all(&self, entries: u64, characters: u64) -> Result<(), PreferenceError> {
        within(PreferenceLimit::Entries, entries, self.entries)?;
        within(PreferenceLimit::TotalCharacters, characters, self.total_characters)
    }
}

fn within(limit: PreferenceLimit, would_be: u64, most: u64) -> Result<(), PreferenceError> {
    if would_be > most { Err(PreferenceError::TooMuch { limit, would_be, most }) } else { Ok(()) }
}

// === impl PreferenceLimit ===

impl PreferenceLimit {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::ValueBytes => "value_bytes",
            Self::TotalCharacters => "total_characters",
        }
    }
}

impl fmt::Display for PreferenceLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
