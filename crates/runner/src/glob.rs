//! Patterns for paths: `*` stays within a component, `**` doesn't.

use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A pattern for paths.
#[derive(Debug)]
pub(crate) struct Glob {
    matcher: GlobMatcher,
    /// True if the pattern is matched against the last component only, at any depth.
    names_only: bool,
}

/// A text that is no pattern.
#[derive(Debug, thiserror::Error)]
#[error("not a glob: {pattern:?}")]
pub(crate) struct GlobError {
    pattern: String,
    #[source]
    source: globset::Error,
}

// === impl Glob ===

impl Glob {
    /// A pattern that whole paths must match.
    pub(crate) fn of_paths(pattern: &str) -> Result<Self, GlobError> {
        Self::new(pattern, false)
    }

    /// Creates a glob; a pattern without a slash matches names at any depth.
    pub(crate) fn of_names_or_paths(pattern: &str) -> Result<Self, GlobError> {
        Self::new(pattern, !pattern.contains('/'))
    }

    fn new(pattern: &str, names_only: bool) -> Result<Self, GlobError> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
        let matcher =
            glob.map_err(|source| GlobError { pattern: pattern.to_owned(), source })?.compile_matcher();
        Ok(Self { matcher, names_only })
    }

    /// Returns true if the path matches.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        let looked_at = match self.names_only {
            true => path.rsplit(|&byte| byte == b'/').next().unwrap_or(path),
            false => path,
        };
        self.matcher.is_match(Path::new(OsStr::from_bytes(looked_at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_star_stays_within_a_component_and_bare_names_match_at_any_depth() {
        let path = |pattern: &str, path: &str| Glob::of_paths(pattern).unwrap().matches(path.as_bytes());
        assert!(path("*.rs", "main.rs") && !path("*.rs", "src/main.rs"));
        assert!(path("**/*.rs", "main.rs") && path("**/*.rs", "src/a/main.rs"));
        assert!(path("src/**", "src/a/b") && !path("src/**", "srcs/a"));
        let include =
            |pattern: &str, path: &str| Glob::of_names_or_paths(pattern).unwrap().matches(path.as_bytes());
        assert!(include("*.rs", "src/a/main.rs") && !include("src/*.rs", "src/a/main.rs"));
        assert!(Glob::of_paths("*").unwrap().matches(b"\xff"));
        assert_eq!(Glob::of_paths("[").unwrap_err().to_string(), "not a glob: \"[\"");
    }
}
