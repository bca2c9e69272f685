//! Keys of preferences and settings: names with dots between them, such as `standards.markdown.line_length`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A key. Case makes a difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Key(String);

/// The text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a key of at most {LONGEST} bytes: names of letters, digits, `_` and `-`, two or more, with dots between them"
)]
pub struct ParseKeyError;

/// A key has no more bytes.
pub const LONGEST: usize = 200;

// === impl Key ===

impl Key {
    /// Reads a key.
    ///
    /// # Errors
    /// [`ParseKeyError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseKeyError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// The key as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), ParseKeyError> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let is_key = text.len() <= LONGEST && text.contains('.') && text.split('.').all(is_name);
    if is_key { Ok(()) } else { Err(ParseKeyError) }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Key {
    type Error = ParseKeyError;

    fn try_from(text: String) -> Result<Self, ParseKeyError> {
        check(&text).map(|()| Self(text))
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_accepts_only_dotted_names() {
        for text in
            ["a.b", "mcp.tool.web.fetch.enabled", "custom.acme-2.X_y", &format!("a.{}", "b".repeat(198))]
        {
            assert_eq!(Key::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "a",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b.c",
            "ä.b",
            "a.b\n",
            "a.*",
            &format!("a.{}", "b".repeat(199)),
        ] {
            assert_eq!(Key::parse(text), Err(ParseKeyError), "{text:?}");
        }
    }
}
