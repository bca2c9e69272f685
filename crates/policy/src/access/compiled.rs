//! Compiles the constraints of an agent into terms that a kernel and a proxy can enforce for its sandboxes.

use super::commands;
use super::constraints::Constraints;
use super::place::NetworkEndpoint;
use crate::egress::{EgressPolicy, HostPattern, Rule};
use crate::permission::Permissions;
use belljar_contract::access::{CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::category::Category;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Terms of an agent's sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxAccess {
    /// Files that the workspace begins with.
    pub workspace: WorkspaceAccess,
    /// True if the sandbox also gets what the host lends besides, such as `--ro` directories.
    pub is_lent_to: bool,
    /// Network access.
    pub web: WebAccess,
    /// Programs that can be started.
    pub programs: ProgramAccess,
    /// Git operations of the host for the sandbox.
    pub git: GitOperations,
    /// Isolation of code: whether a sandbox has its own root and network.
    pub isolation: CodeIsolation,
}

/// Files that a workspace begins with. It is always a copy; only a user can apply its changes to the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceAccess {
    /// None.
    Empty,
    /// The project's files.
    Project,
}

/// Network access of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum WebAccess {
    /// None: the sandbox has no web hatch.
    None,
    /// The configured rules and these places.
    Listed {
        /// The places.
        places: Vec<NetworkEndpoint>,
        /// True if git pushes there are refused.
        refuses_pushes: bool,
    },
    /// All public hosts, at the usual web ports.
    Open {
        /// True if git pushes there are refused.
        refuses_pushes: bool,
    },
}

/// Programs that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum ProgramAccess {
    /// All programs.
    All,
    /// Only the programs of these names.
    Only {
        /// The names.
        names: BTreeSet<String>,
    },
}

/// Git operations of the host for the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitOperations {
    /// True if the host clones and fetches.
    pub fetches: bool,
    /// True if the host pushes.
    pub pushes: bool,
}

// === impl SandboxAccess ===

impl SandboxAccess {
    /// Returns the terms of sandboxes with these constraints.
    pub fn of(constraints: &Constraints) -> Self {
        let git = GitOperations {
            fetches: constraints.git != GitAccess::LocalOnly && constraints.network != NetworkMode::None,
            pushes: constraints.git == GitAccess::Full && constraints.network != NetworkMode::None,
        };
        let refuses_pushes = !git.pushes;
        Self {
            workspace: match constraints.file_system {
                FileSystemScope::WorkspaceOnly => WorkspaceAccess::Empty,
                FileSystemScope::ProjectDirectory | FileSystemScope::Full => WorkspaceAccess::Project,
            },
            is_lent_to: constraints.file_system == FileSystemScope::Full,
            web: match constraints.network {
                NetworkMode::None => WebAccess::None,
                NetworkMode::AllowlistOnly => {
                    WebAccess::Listed { places: constraints.network_allowlist.clone(), refuses_pushes }
                }
                NetworkMode::Open => WebAccess::Open { refuses_pushes },
            },
            programs: match constraints.terminal {
                TerminalAccess::None => ProgramAccess::Only { names: commands::of_tools() },
                TerminalAccess::RestrictedCommands => {
                    ProgramAccess::Only { names: constraints.commands.clone() }
                }
                TerminalAccess::Full => ProgramAccess::All,
            },
            git,
            isolation: constraints.code_execution,
        }
    }

    /// Returns the terms of an agent's sandboxes. If its levels differ by category, each dimension comes from the category that
    /// it is about: files, terminal, git. Programs in a sandbox reach only hosts that both code and commands may reach.
    pub fn of_agent(permissions: &Permissions) -> Self {
        let of = |category| Self::of(permissions.constraints_for(category));
        let (files, code, terminal) =
            (of(Category::FileSystem), of(Category::CodeExecution), of(Category::Terminal));
        Self {
            workspace: files.workspace,
            is_lent_to: files.is_lent_to,
            web: code.web.narrowed(terminal.web),
            programs: terminal.programs,
            git: of(Category::VersionControl).git,
            isolation: code.isolation,
        }
        .with_pushes_refused()
    }

    /// Returns the terms of tools that use the web themselves. Their category has a level of its own.
    pub fn of_web_tools(permissions: &Permissions) -> Self {
        let own = Self::of(permissions.constraints_for(Category::Web));
        Self { web: own.web, ..Self::of_agent(permissions) }.with_pushes_refused()
    }

    fn with_pushes_refused(self) -> Self {
        let web = if self.git.pushes { self.web } else { self.web.refusing_pushes() };
        Self { web, ..self }
    }

    /// Returns true if these terms allow nothing that the other ones don't.
    pub fn is_within(&self, other: &Self) -> bool {
        let isolation = self.isolation == other.isolation || self.isolation == CodeIsolation::Containerized;
        (self.workspace == other.workspace || self.workspace == WorkspaceAccess::Empty)
            && (!self.is_lent_to || other.is_lent_to)
            && self.web.is_within(&other.web)
            && self.programs.is_within(&other.programs)
            && (!self.git.fetches || other.git.fetches)
            && (!self.git.pushes || other.git.pushes)
            && isolation
    }

    /// Returns the egress policy with these configured rules; `None` if there is no web hatch.
    pub fn egress(&self, house: &EgressPolicy) -> Option<EgressPolicy> {
        self.egress_and(house, vec![Rule::for_hosts(HostPattern::Any)])
    }

    /// Like [`Self::egress`], for configured rules that are meant for all sandboxes: an open network adds nothing to them, and
    /// a listed one adds its places.
    pub fn egress_within(&self, house: &EgressPolicy) -> Option<EgressPolicy> {
        self.egress_and(house, Vec::new())
    }

    fn egress_and(&self, house: &EgressPolicy, open: Vec<Rule>) -> Option<EgressPolicy> {
        let (rules, refuses_pushes) = match &self.web {
            WebAccess::None => return None,
            WebAccess::Listed { places, refuses_pushes } => {
                (places.iter().map(NetworkEndpoint::rule).collect(), *refuses_pushes)
            }
            WebAccess::Open { refuses_pushes } => (open, *refuses_pushes),
        };
        let policy = EgressPolicy::new(house.rules().iter().cloned().chain(rules).collect());
        let policy = if refuses_pushes { policy.refusing_pushes() } else { policy };
        Some(if self.git.fetches { policy } else { policy.refusing_fetches() })
    }
}

// === impl WebAccess ===

impl WebAccess {
    /// Returns the narrower of both; no network access if neither is within the other.
    fn narrowed(self, other: Self) -> Self {
        if self.is_within(&other) {
            return self;
        }
        if other.is_within(&self) { other } else { Self::None }
    }

    fn refusing_pushes(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Listed { places, .. } => Self::Listed { places, refuses_pushes: true },
            Self::Open { .. } => Self::Open { refuses_pushes: true },
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, _) => true,
            (
                Self::Listed { places, refuses_pushes },
                Self::Listed { places: others, refuses_pushes: other_refuses },
            ) => (*refuses_pushes || !other_refuses) && places.iter().all(|place| others.contains(place)),
            (
                Self::Listed { refuses_pushes, .. } | Self::Open { refuses_pushes },
                Self::Open { refuses_pushes: other_refuses },
            ) => *refuses_pushes || !other_refuses,
            (Self::Open { .. }, Self::Listed { .. }) | (_, Self::None) => false,
        }
    }
}

// === impl ProgramAccess ===

impl ProgramAccess {
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::All) => true,
            (Self::All, Self::Only { .. }) => false,
            (Self::Only { names }, Self::Only { names: others }) => names.is_subset(others),
        }
    }
}

#[cfg(test)]
mod tests;
