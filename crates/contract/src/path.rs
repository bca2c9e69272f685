//! Paths as steps write them, and what they mean beneath the workspace.
//!
//! Two stages. [`StepPath`] is any text that can name a file at all; a job with another text is malformed.
//! [`WorkspacePath`] is what is left once the path is known to stay in the workspace; one that doesn't is refused by
//! policy, not by grammar. Neither looks at a file system: symbolic links are the opener's business.

mod artifact;

pub use artifact::{ArtifactPath, ParseArtifactPathError};

use crate::decode::{Decode, DecodeContext};
use crate::json::{Node, is_invisible};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Path of the workspace in every job, whatever directory of the host it really is (`docs/contracts/job.md#j13.1`).
pub const WORKSPACE: &str = "/workspace";

/// A path in a step: relative to the workspace, or absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct StepPath(String);

/// A path relative to the workspace's root that stays beneath it; empty for the root itself.
///
/// It has no empty, `.` or `..` component and no leading or trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

/// Reason why a text is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParsePathError {
    /// The path is empty.
    #[error("an empty path")]
    Empty,
    /// Longer than the kernel takes.
    #[error("longer than {} bytes", StepPath::MAX_BYTES)]
    TooLong,
    /// A component longer than file systems take.
    #[error("a component longer than {} bytes", StepPath::MAX_COMPONENT_BYTES)]
    ComponentTooLong,
    /// NUL, a line break, another control character, or one that reorders text on a screen.
    #[error("the character U+{:04X}, which is not allowed in paths", u32::from(*character))]
    Character {
        /// The character.
        character: char,
    },
    /// Two slashes in a row.
    #[error("an empty component (`//`)")]
    EmptyComponent,
}

/// A path that leads out of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path escapes workspace: {path}")]
pub struct PathEscapes {
    /// The path as it was written.
    pub path: String,
}

// === impl StepPath ===

impl StepPath {
    /// Maximum length of a path: one less than the kernel's `PATH_MAX`, which counts the final NUL.
    pub const MAX_BYTES: usize = 4095;
    /// The kernel's `NAME_MAX`.
    pub const MAX_COMPONENT_BYTES: usize = 255;

    /// Parses a path.
    ///
    /// # Errors
    /// [`ParsePathError`] for a text that can't name a file, or that only misleads readers.
    pub fn parse(text: &str) -> Result<Self, ParsePathError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path beneath the workspace's root. An absolute path must start with [`WORKSPACE`] or with `root`, the
    /// directory that the workspace really is where the step runs.
    ///
    /// # Errors
    /// [`PathEscapes`] for `..` anywhere, and for an absolute path that lies elsewhere.
    pub fn beneath(&self, root: &str) -> Result<WorkspacePath, PathEscapes> {
        let escapes = || PathEscapes { path: self.0.clone() };
        let relative = match self.0.starts_with('/') {
            false => self.0.as_str(),
            true => [WORKSPACE, root]
                .iter()
                .find_map(|base| strip_directory(&self.0, base.trim_end_matches('/')))
                .ok_or_else(escapes)?,
        };
        WorkspacePath::of_components(relative).ok_or_else(escapes)
    }
}

fn strip_directory<'t>(path: &'t str, directory: &str) -> Option<&'t str> {
    path.strip_prefix(directory).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn check(text: &str) -> Result<(), ParsePathError> {
    if text.is_empty() {
        return Err(ParsePathError::Empty);
    }
    if text.len() > StepPath::MAX_BYTES {
        return Err(ParsePathError::TooLong);
    }
    if let Some(character) = text.chars().find(|&c| c.is_control() || is_invisible(c)) {
        return Err(ParsePathError::Character { character });
    }
    if text.contains("//") {
        return Err(ParsePathError::EmptyComponent);
    }
    match text.split('/').any(|component| component.len() > StepPath::MAX_COMPONENT_BYTES) {
        true => Err(ParsePathError::ComponentTooLong),
        false => Ok(()),
    }
}

impl TryFrom<String> for StepPath {
    type Error = ParsePathError;

    fn try_from(text: String) -> Result<Self, ParsePathError> {
        check(&text).map(|()| Self(text))
    }
}

impl From<StepPath> for String {
    fn from(path: StepPath) -> Self {
        path.0
    }
}

impl fmt::Display for StepPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for StepPath {
    fn schema_name() -> Cow<'static, str> {
        "StepPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A path: relative to the workspace, or absolute and starting with /workspace. At most 4095 \
                            bytes, 255 a component; no control characters, none that reorder text, no `//`.",
            "type": "string",
            "minLength": 1,
            "maxLength": Self::MAX_BYTES,
            "pattern": format!("^[^{NEVER_IN_A_PATH}]*$"),
            "not": { "pattern": "//|[^/]{256}" },
        })
    }
}

/// Characters of [`ParsePathError::Character`], as a class of a regular expression.
const NEVER_IN_A_PATH: &str =
    "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff";

impl Decode for StepPath {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "a path in the workspace, relative or starting with /workspace", Self::parse)
    }
}

// === impl WorkspacePath ===

impl WorkspacePath {
    /// The workspace's root.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// A path that is relative to the root already, with any characters in its names, as a diff may have them.
    ///
    /// # Errors
    /// [`PathEscapes`] for an absolute path, or one with `..`.
    pub fn beneath_root(path: &str) -> Result<Self, PathEscapes> {
        let relative = Some(path).filter(|path| !path.starts_with('/'));
        relative.and_then(Self::of_components).ok_or_else(|| PathEscapes { path: path.to_owned() })
    }

    fn of_components(relative: &str) -> Option<Self> {
        let mut components = Vec::new();
        for component in relative.split('/') {
            match component {
                "" | "." => {}
                ".." => return None,
                name => components.push(name),
            }
        }
        Some(Self(components.join("/")))
    }

    /// The path relative to the workspace's root; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if this is `directory` or lies beneath it.
    pub fn is_within(&self, directory: &Self) -> bool {
        directory.is_root() || strip_directory(&self.0, &directory.0).is_some()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beneath(text: &str) -> Result<String, PathEscapes> {
        StepPath::parse(text).unwrap().beneath("/srv/checkout").map(|path| path.as_str().to_owned())
    }

    #[test]
    fn step_path_accepts_both_workspace_roots_and_drops_dots() {
        for text in [
            "src/main.rs",
            "./src/main.rs",
            "src/./main.rs",
            "/workspace/src/main.rs",
            "/srv/checkout/src/main.rs",
        ] {
            assert_eq!(beneath(text).unwrap(), "src/main.rs", "{text}");
        }
        for text in [".", "./", "/workspace", "/workspace/", "/srv/checkout"] {
            assert_eq!(beneath(text).unwrap(), "", "{text}");
        }
    }

    #[test]
    fn step_path_outside_workspace_is_an_escape() {
        for text in [
            "..",
            "../x",
            "a/../b",
            "a/..",
            "/etc/passwd",
            "/workspace-x/f",
            "/workspace/../etc",
            "/",
            "/proc/self/fd/3",
        ] {
            assert!(beneath(text).is_err(), "{text}");
        }
    }

    #[test]
    fn step_path_rejects_empty_overlong_and_misleading_text() {
        use ParsePathError::{Character, ComponentTooLong, Empty, EmptyComponent, TooLong};
        assert_eq!(StepPath::parse(""), Err(Empty));
        assert_eq!(StepPath::parse(&"a/".repeat(2048)), Err(TooLong));
        assert_eq!(StepPath::parse(&"a".repeat(256)), Err(ComponentTooLong));
        assert_eq!(StepPath::parse("a//b"), Err(EmptyComponent));
        for character in ['\0', '\n', '\r', '\u{1b}', '\u{7f}', '\u{85}', '\u{202e}', '\u{200f}', '\u{feff}']
        {
            assert_eq!(StepPath::parse(&format!("a{character}b")), Err(Character { character }));
        }
    }

    #[test]
    fn is_within_compares_whole_components() {
        let path = |text: &str| StepPath::parse(text).unwrap().beneath(WORKSPACE).unwrap();
        assert!(path("src/a.rs").is_within(&path("src")));
        assert!(path("src").is_within(&path("src")));
        assert!(path("src").is_within(&WorkspacePath::root()));
        assert!(!path("src-old/a.rs").is_within(&path("src")));
    }
}
