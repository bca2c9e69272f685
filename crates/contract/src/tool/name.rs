//! Names of tools: one form, compared byte by byte.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A tool's name: `artifact.put`, or `mcp_files_read` for a tool of another server. It consists of MCP's letters,
/// digits, `_`, `-` and `.`, 128 at most. Names are compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// The text is no tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a tool's name: 1 to {LONGEST} of the characters A-Z, a-z, 0-9, `_`, `-` and `.`")]
pub struct InvalidToolNameError;

const LONGEST: usize = 128;

// === impl ToolName ===

impl ToolName {
    /// Reads a name.
    ///
    /// # Errors
    /// [`InvalidToolNameError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, InvalidToolNameError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let is_name = (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_allowed);
        is_name.then(|| Self(text.to_owned())).ok_or(InvalidToolNameError)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the first dot: `artifact` of `artifact.put`.
    pub fn namespace(&self) -> &str {
        self.0.split_once('.').map_or("", |(namespace, _)| namespace)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolNameError;

    fn try_from(text: String) -> Result<Self, InvalidToolNameError> {
        Self::parse(&text)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_name_rejects_lookalikes() {
        for text in ["artifact.put", "mcp_files_read-file", "a", &"a".repeat(128)] {
            assert_eq!(ToolName::parse(text).unwrap().as_str(), text);
        }
        let long = "a".repeat(129);
        for text in
            ["", " artifact.put", "artifact.put\n", "artifact․put", "аrtifact.put", "a/b", "a\0", &long]
        {
            assert_eq!(ToolName::parse(text), Err(InvalidToolNameError), "{text:?}");
        }
    }
}
