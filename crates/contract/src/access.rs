//! Access of an agent's tools: levels, and the six dimensions in which they differ (`docs/contracts/tools.md#t16`).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A level of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLevel {
    /// An isolated workspace, and nothing else.
    Sandboxed,
    /// The project's directory, and network destinations on the allowlist.
    Restricted,
    /// Typical access for software development.
    Standard,
    /// All access that the host can give.
    Elevated,
    /// Exactly the access that the agent's configuration lists. It lies outside of the others' order.
    Custom,
}

/// Files that an agent can access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSystemScope {
    /// A workspace of the agent's own.
    WorkspaceOnly,
    /// The project's directory.
    ProjectDirectory,
    /// The directories that the host provides, besides.
    Full,
}

/// Network destinations that an agent can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// No destination.
    None,
    /// Destinations on the allowlist.
    AllowlistOnly,
    /// All public destinations.
    Open,
}

/// Repositories that an agent's git can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitAccess {
    /// Only the workspace.
    LocalOnly,
    /// Fetching from remote repositories, too.
    ReadAndBranch,
    /// Pushing to remote repositories, too.
    Full,
}

/// Isolation that code runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeIsolation {
    /// A container with its own root, network and processes.
    Containerized,
    /// A restricted process of the host.
    Process,
}

/// Programs that an agent may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalAccess {
    /// No program except those that tools themselves need.
    None,
    /// Only listed programs.
    RestrictedCommands,
    /// All programs.
    Full,
}

/// Defines the names of an enum's variants.
macro_rules! named {
    ($($type:ident { $($variant:ident => $name:literal),+ $(,)? })+) => { $(
        impl $type {
            /// All variants, from the most restrictive to the least.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name on the wire and in configurations.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the variant of that name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    )+ };
}

named! {
    AccessLevel {
        Sandboxed => "sandboxed",
        Restricted => "restricted",
        Standard => "standard",
        Elevated => "elevated",
        Custom => "custom",
    }
    FileSystemScope {
        WorkspaceOnly => "workspace_only",
        ProjectDirectory => "project_directory",
        Full => "full",
    }
    NetworkMode { None => "none", AllowlistOnly => "allowlist_only", Open => "open" }
    GitAccess { LocalOnly => "local_only", ReadAndBranch => "read_and_branch", Full => "full" }
    CodeIsolation { Containerized => "containerized", Process => "process" }
    TerminalAccess { None => "none", RestrictedCommands => "restricted_commands", Full => "full" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_level_names_match_serialized_names() {
        for level in AccessLevel::ALL {
            assert_eq!(AccessLevel::named(level.as_str()), Some(*level));
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
        for mode in NetworkMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
        assert_eq!(AccessLevel::named("Standard"), None);
    }

    #[test]
    fn access_values_are_ordered_from_least_to_most_permissive() {
        assert!(
            FileSystemScope::ALL.is_sorted() && NetworkMode::ALL.is_sorted() && GitAccess::ALL.is_sorted()
        );
        assert!(CodeIsolation::ALL.is_sorted() && TerminalAccess::ALL.is_sorted());
        assert!(AccessLevel::ALL.is_sorted());
    }
}
