//! What the sandboxes of an agent have: what is allowed by name, put so that a kernel and a proxy can hold it.

use super::commands;
use super::constraints::Constraints;
use super::place::NetworkPlace;
use crate::egress::{EgressPolicy, HostPattern, Rule};
use crate::permission::Permissions;
use belljar_contract::access::{CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::category::Category;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a sandbox has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    /// Whose files its workspace begins with.
    pub workspace: WorkspaceTerms,
    /// Whether what the host lends besides is there, too.
    pub is_lent_to: bool,
    /// What it reaches.
    pub web: WebTerms,
    /// Which programs it can start.
    pub programs: ProgramTerms,
    /// How far the host's git goes for it.
    pub git: GitTerms,
    /// Whether it has a root and a network of its own.
    pub isolation: CodeIsolation,
}

/// Whose files a workspace begins with. It is a copy in any case: what comes of it reaches a project by a person's hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceTerms {
    /// Nobody's.
    Empty,
    /// The project's.
    Project,
}

/// What it reaches of the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum WebTerms {
    /// Nothing: there is no way out to it.
    None,
    /// What the house's rules say, and these places.
    Listed {
        /// The places.
        places: Vec<NetworkPlace>,
        /// Whether pushes of git are refused there.
        refuses_pushes: bool,
    },
    /// All that is public, at the ports of the web.
    Open {
        /// Whether pushes of git are refused there.
        refuses_pushes: bool,
    },
}

/// Which programs it can start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum ProgramTerms {
    /// All that there are.
    All,
    /// These, by name.
    Only {
        /// The names.
        names: BTreeSet<String>,
    },
}

/// How far the host's git goes for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitTerms {
    /// Whether it clones and fetches.
    pub fetches: bool,
    /// Whether it pushes.
    pub pushes: bool,
}

// === impl Compiled ===

impl Compiled {
    /// What sandboxes have for whom these hold.
    pub fn of(constraints: &Constraints) -> Self {
        let git = GitTerms {
            fetches: constraints.git != GitAccess::LocalOnly && constraints.network != NetworkMode::None,
            pushes: constraints.git == GitAccess::Full && constraints.network != NetworkMode::None,
        };
        let refuses_pushes = !git.pushes;
        Self {
            workspace: match constraints.file_system {
                FileSystemScope::WorkspaceOnly => WorkspaceTerms::Empty,
                FileSystemScope::ProjectDirectory | FileSystemScope::Full => WorkspaceTerms::Project,
            },
            is_lent_to: constraints.file_system == FileSystemScope::Full,
            web: match constraints.network {
                NetworkMode::None => WebTerms::None,
                NetworkMode::AllowlistOnly => {
                    WebTerms::Listed { places: constraints.network_allowlist.clone(), refuses_pushes }
                }
                NetworkMode::Open => WebTerms::Open { refuses_pushes },
            },
            programs: match constraints.terminal {
                TerminalAccess::None => ProgramTerms::Only { names: commands::of_tools() },
                TerminalAccess::RestrictedCommands => {
                    ProgramTerms::Only { names: constraints.commands.clone() }
                }
                TerminalAccess::Full => ProgramTerms::All,
            },
            git,
            isolation: constraints.code_execution,
        }
    }

    /// What the sandboxes of an agent have. Where its levels differ by category each dimension is that of the category which it is about:
    /// the files', the terminal's, git's. Programs in them reach no more of the web than both code and commands may.
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

    /// The same for tools that reach the web themselves, whose category has a level of its own.
    pub fn of_web_tools(permissions: &Permissions) -> Self {
        let own = Self::of(permissions.constraints_for(Category::Web));
        Self { web: own.web, ..Self::of_agent(permissions) }.with_pushes_refused()
    }

    fn with_pushes_refused(self) -> Self {
        let web = if self.git.pushes { self.web } else { self.web.refusing_pushes() };
        Self { web, ..self }
    }

    /// Whether it has nothing that the other one doesn't have: who may have that may have this.
    pub fn is_within(&self, other: &Self) -> bool {
        let isolation = self.isolation == other.isolation || self.isolation == CodeIsolation::Containerized;
        (self.workspace == other.workspace || self.workspace == WorkspaceTerms::Empty)
            && (!self.is_lent_to || other.is_lent_to)
            && self.web.is_within(&other.web)
            && self.programs.is_within(&other.programs)
            && (!self.git.fetches || other.git.fetches)
            && (!self.git.pushes || other.git.pushes)
            && isolation
    }

    /// What is reached of the web, where the house has these rules; nothing where there is no way out at all.
    pub fn egress(&self, house: &EgressPolicy) -> Option<EgressPolicy> {
        self.egress_and(house, vec![Rule::for_hosts(HostPattern::Any)])
    }

    /// The same where the house's rules are for all: an open network adds nothing to them, and one that is listed the listed places.
    pub fn egress_within(&self, house: &EgressPolicy) -> Option<EgressPolicy> {
        self.egress_and(house, Vec::new())
    }

    fn egress_and(&self, house: &EgressPolicy, open: Vec<Rule>) -> Option<EgressPolicy> {
        let (rules, refuses_pushes) = match &self.web {
            WebTerms::None => return None,
            WebTerms::Listed { places, refuses_pushes } => {
                (places.iter().map(NetworkPlace::rule).collect(), *refuses_pushes)
            }
            WebTerms::Open { refuses_pushes } => (open, *refuses_pushes),
        };
        let policy = EgressPolicy::new(house.rules().iter().cloned().chain(rules).collect());
        let policy = if refuses_pushes { policy.refusing_pushes() } else { policy };
        Some(if self.git.fetches { policy } else { policy.refusing_fetches() })
    }
}

// === impl WebTerms ===

impl WebTerms {
    /// The one of both that reaches less; nothing where neither does.
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

// === impl ProgramTerms ===

impl ProgramTerms {
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
