//! Names of the files that a task keeps.

use crate::text::is_hidden;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a file that a task keeps: names with slashes between them. One file has one name: there is no `.`, no `..`, and no
/// slash at an end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ArtifactPath(String);

/// The text names no such file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseArtifactPathError {
    /// The path, or a component of it, is too long, or the path is empty.
    #[error("the path of an artifact has 1 to {} bytes, 255 between two slashes", ArtifactPath::MAX_BYTES)]
    Length,
    /// The path contains a character that misleads readers.
    #[error("the path of an artifact must not contain the character {character:?}")]
    Character {
        /// The first such character.
        character: char,
    },
    /// The path is not in its canonical form, so another path could mean the same file.
    #[error(
        "the path of an artifact is relative, and has no `.`, no `..` and nothing empty between two slashes"
    )]
    Component,
}

// === impl ArtifactPath ===

impl ArtifactPath {
    /// A path has no more bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Reads a path.
    ///
    /// # Errors
    /// [`ParseArtifactPathError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseArtifactPathError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), ParseArtifactPathError> {
    let is_long = |name: &str| name.len() > super::StepPath::MAX_COMPONENT_BYTES;
    if text.is_empty() || text.len() > ArtifactPath::MAX_BYTES || text.split('/').any(is_long) {
        return Err(ParseArtifactPathError::Length);
    }
    if let Some(character) = text.chars().find(|&c| c.is_control() || is_hidden(c) || c == '\\') {
        return Err(ParseArtifactPathError::Character { character });
    }
    match text.split('/').any(|name| matches!(name, "" | "." | "..")) {
        true => Err(ParseArtifactPathError::Component),
        false => Ok(()),
    }
}

impl fmt::Display for ArtifactPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ArtifactPath {
    type Error = ParseArtifactPathError;

    fn try_from(text: String) -> Result<Self, ParseArtifactPathError> {
        check(&text).map(|()| Self(text))
    }
}

impl From<ArtifactPath> for String {
    fn from(path: ArtifactPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_path_rejects_noncanonical_names() {
        use ParseArtifactPathError::{Character, Component, Length};
        for text in ["a", "reports/2026/q1.md", ".hidden", "a b", "…", &"a/".repeat(511).add_a()] {
            assert_eq!(ArtifactPath::parse(text).unwrap().as_str(), text);
        }
        for (text, why) in [
            ("", Length),
            (&*"a/".repeat(512).add_a(), Length),
            (&*"a".repeat(256), Length),
            ("/a", Component),
            ("a/", Component),
            ("a//b", Component),
            (".", Component),
            ("a/../b", Component),
            ("./a", Component),
            ("a\\b", Character { character: '\\' }),
            ("a\nb", Character { character: '\n' }),
            ("a\0", Character { character: '\0' }),
            ("a\u{202e}b", Character { character: '\u{202e}' }),
        ] {
            assert_eq!(ArtifactPath::parse(text), Err(why), "{text:?}");
        }
    }

    trait AddA {
        fn add_a(self) -> String;
    }

    impl AddA for String {
        fn add_a(self) -> String {
            self + "a"
        }
    }
}
