//! Tool names in rules: exact, or by prefix.

use belljar_contract::tool::ToolName;
use std::fmt;

/// Name, or prefix with `*` after it: `artifact.put`, `artifact.*`, `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
}

/// The text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a tool name, or a prefix followed by one `*`")]
pub struct InvalidPatternError;

// === impl ToolPattern ===

impl ToolPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`InvalidPatternError`], for every other text.
    pub fn parse(text: &str) -> Result<Self, InvalidPatternError> {
        let beginning = text.strip_suffix('*').unwrap_or(text);
        let is_pattern = text == "*" || ToolName::parse(beginning).is_ok();
        is_pattern.then(|| Self { text: text.to_owned() }).ok_or(InvalidPatternError)
    }

    /// Returns true if the pattern matches the tool.
    pub fn matches(&self, name: &ToolName) -> bool {
        self.matches_text(name.as_str())
    }

    pub(crate) fn matches_text(&self, name: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => self.text == name,
        }
    }

    /// Returns the pattern in lower case.
    pub(crate) fn folded(&self) -> Self {
        Self { text: self.text.to_ascii_lowercase() }
    }

    /// Returns true if the pattern is a single name.
    pub(crate) fn is_exact(&self) -> bool {
        !self.text.ends_with('*')
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
