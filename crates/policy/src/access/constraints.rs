//! Six dimensions in which levels differ, and overrides for one level or one agent.

use super::place::NetworkEndpoint;
use belljar_contract::access::{CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::action::ActionType;
use serde::Serialize;
use std::collections::BTreeSet;

/// Constraints of an agent in each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Constraints {
    /// Files that are available.
    pub file_system: FileSystemScope,
    /// Network access.
    pub network: NetworkMode,
    /// Git operations.
    pub git: GitAccess,
    /// Isolation of code.
    pub code_execution: CodeIsolation,
    /// Programs that may be started.
    pub terminal: TerminalAccess,
    /// Actions that require a user's approval.
    pub requires_approval: BTreeSet<ActionType>,
    /// Places that `allowlist_only` allows, in addition to the configured egress rules.
    pub network_allowlist: Vec<NetworkEndpoint>,
    /// Programs of `restricted_commands`, by name.
    pub commands: BTreeSet<String>,
}

/// Overrides of constraints. A dimension without one is unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Constraints")]
pub struct ConstraintOverrides {
    pub file_system: Option<FileSystemScope>,
    pub network: Option<NetworkMode>,
    pub git: Option<GitAccess>,
    pub code_execution: Option<CodeIsolation>,
    pub terminal: Option<TerminalAccess>,
    pub requires_approval: Option<BTreeSet<ActionType>>,
    pub network_allowlist: Option<Vec<NetworkEndpoint>>,
    pub commands: Option<BTreeSet<String>>,
}

// === impl Constraints ===

impl Constraints {
    /// Returns these constraints with the overrides applied.
    pub fn with(&self, said: &ConstraintOverrides) -> Self {
        let said = said.clone();
        Self {
            file_system: said.file_system.unwrap_or(self.file_system),
            network: said.network.unwrap_or(self.network),
            git: said.git.unwrap_or(self.git),
            code_execution: said.code_execution.unwrap_or(self.code_execution),
            terminal: said.terminal.unwrap_or(self.terminal),
            requires_approval: said.requires_approval.unwrap_or_else(|| self.requires_approval.clone()),
            network_allowlist: said.network_allowlist.unwrap_or_else(|| self.network_allowlist.clone()),
            commands: said.commands.unwrap_or_else(|| self.commands.clone()),
        }
    }
}
