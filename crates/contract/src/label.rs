//! Display names, for example of a skill or an image.

use crate::text::is_printable;
use std::fmt;

/// A display name: printable text on one line. Names need not be unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(String);

/// The text is no label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 1 to {LONGEST} bytes of printable text")]
pub struct ParseLabelError;

/// A label has no more bytes.
pub const LONGEST: usize = 128;

// === impl Label ===

impl Label {
    /// Reads a label.
    ///
    /// # Errors
    /// [`ParseLabelError`] for a text that is empty, too long or not printable.
    pub fn parse(text: &str) -> Result<Self, ParseLabelError> {
        match text.len() <= LONGEST && is_printable(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ParseLabelError),
        }
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
