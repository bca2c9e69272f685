//! Skills: what agents may read on how something is done.

use crate::text::is_printable;
use std::fmt;

/// What a skill is called. Two may have one name; the nearer one is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SkillName(String);

/// The text is no name of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a name of 1 to {LONGEST_NAME} bytes of printable text")]
pub struct ParseSkillNameError;

/// A name has no more bytes.
pub const LONGEST_NAME: usize = 128;

/// A skill has no more bytes.
pub const LONGEST_CONTENT: usize = 256 << 10;

// === impl SkillName ===

impl SkillName {
    /// Reads a name.
    ///
    /// # Errors
    /// [`ParseSkillNameError`] for a text that is empty, too long or not printable.
    pub fn parse(text: &str) -> Result<Self, ParseSkillNameError> {
        match text.len() <= LONGEST_NAME && is_printable(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ParseSkillNameError),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
