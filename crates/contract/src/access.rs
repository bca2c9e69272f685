//! How far an agent's tools reach: levels, and the six dimensions in which they differ (`spec/3 §Tool Access Levels`).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A level of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLevel {
    /// An isolated workspace, and nothing else.
    Sandboxed,
    /// The project, and of the network what is listed.
    Restricted,
    /// What developing usually takes.
    Standard,
    /// Everything that there is to be had.
    Elevated,
    /// What is said of that agent, and nothing that isn't. It lies outside of the others' order.
    Custom,
}

/// Which files there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSystemScope {
    /// A workspace of the agent's own.
    WorkspaceOnly,
    /// The project's directory.
    ProjectDirectory,
    /// What the host lends, besides.
    Full,
}

/// What of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Nothing.
    None,
    /// What is listed.
    AllowlistOnly,
    /// All that is public.
    Open,
}

/// How far git goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitAccess {
    /// Only in the workspace.
    LocalOnly,
    /// What is elsewhere is fetched, too.
    ReadAndBranch,
    /// And pushed to.
    Full,
}

/// What code runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeIsolation {
    /// A root, a network and processes of its own.
    Containerized,
    /// A process of the host, walled in.
    Process,
}

/// Which programs may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalAccess {
    /// None but what tools themselves need.
    None,
    /// Those that are listed.
    RestrictedCommands,
    /// Any.
    Full,
}

/// Something that has a fixed set of names.
macro_rules! named {
    ($($type:ident { $($variant:ident => $name:literal),+ $(,)? })+) => { $(
        impl $type {
            /// All of them, those that allow less before those that allow more.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name on the wire and in configurations.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The one of that name.
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
    fn each_has_one_name_everywhere() {
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
    fn what_allows_less_comes_first() {
        assert!(
            FileSystemScope::ALL.is_sorted() && NetworkMode::ALL.is_sorted() && GitAccess::ALL.is_sorted()
        );
        assert!(CodeIsolation::ALL.is_sorted() && TerminalAccess::ALL.is_sorted());
        assert!(AccessLevel::ALL.is_sorted());
    }
}
