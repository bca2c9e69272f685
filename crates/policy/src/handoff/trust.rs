//! What somebody has said yes to.

use super::Finding;
use std::collections::BTreeSet;

/// Paths that somebody trusts, each as it was told; or all of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    is_all: bool,
    paths: BTreeSet<String>,
}

// === impl Trust ===

impl Trust {
    /// In everything. For what doesn't get to a person's tree, or where somebody has said so.
    pub fn in_all() -> Self {
        Self { is_all: true, paths: BTreeSet::new() }
    }

    /// In these paths; in what is below them, too, for one that ends with a slash.
    pub fn in_paths(paths: impl IntoIterator<Item = String>) -> Self {
        Self { is_all: false, paths: paths.into_iter().collect() }
    }

    /// In these, too.
    #[must_use]
    pub fn and_in(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.paths.extend(paths);
        self
    }

    /// Whether nothing is left to ask.
    pub fn is_in_all(&self) -> bool {
        self.is_all
    }

    /// The paths, where it isn't all.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// The findings that nobody has said yes to.
    pub fn without(&self, findings: Vec<Finding>) -> Vec<Finding> {
        findings.into_iter().filter(|finding| !self.covers(&finding.path)).collect()
    }

    /// Whether a path is trusted.
    pub fn covers(&self, path: &str) -> bool {
        let is_below = |above: &String| above.ends_with('/') && path.starts_with(above.as_str());
        self.is_all || self.paths.contains(path) || self.paths.iter().any(is_below)
    }
}
