//! Paths that a user has approved.

use super::Finding;
use std::collections::BTreeSet;

/// Approved paths, each as it was reported; or everything in a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovedPaths {
    is_all: bool,
    paths: BTreeSet<String>,
}

// === impl ApprovedPaths ===

impl ApprovedPaths {
    /// Trusts everything. For changes that don't reach a user's tree, or that a user has approved as a whole.
    pub fn in_all() -> Self {
        Self { is_all: true, paths: BTreeSet::new() }
    }

    /// Trusts these paths; a path that ends with a slash includes everything below it.
    pub fn in_paths(paths: impl IntoIterator<Item = String>) -> Self {
        Self { is_all: false, paths: paths.into_iter().collect() }
    }

    /// Trusts these paths, too.
    #[must_use]
    pub fn and_in(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.paths.extend(paths);
        self
    }

    /// Returns true if everything is trusted.
    pub fn is_in_all(&self) -> bool {
        self.is_all
    }

    /// Returns the trusted paths, if not everything is trusted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Returns the findings that were not approved.
    pub fn without(&self, findings: Vec<Finding>) -> Vec<Finding> {
        findings.into_iter().filter(|finding| !self.covers(&finding.path)).collect()
    }

    /// Returns true if a path is trusted.
    pub fn covers(&self, path: &str) -> bool {
        let is_below = |above: &String| above.ends_with('/') && path.starts_with(above.as_str());
        self.is_all || self.paths.contains(path) || self.paths.iter().any(is_below)
    }
}
