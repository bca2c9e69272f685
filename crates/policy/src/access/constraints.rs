//! The six dimensions in which levels differ, and what may be said of them for one level or one agent.

use super::place::NetworkPlace;
use belljar_contract::access::{CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::action::ActionType;
use serde::Serialize;
use std::collections::BTreeSet;

/// What holds for an agent, in each dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Constraints {
    /// Which files there are.
    pub file_system: FileSystemScope,
    /// What of the network.
    pub network: NetworkMode,
    /// How far git goes.
    pub git: GitAccess,
    /// What code runs in.
    pub code_execution: CodeIsolation,
    /// Which programs may be started.
    pub terminal: TerminalAccess,
    /// What takes a person's yes.
    pub requires_approval: BTreeSet<ActionType>,
    /// Where `allowlist_only` leads, besides what the house's own rules say.
    pub network_allowlist: Vec<NetworkPlace>,
    /// What `restricted_commands` are, by name.
    pub commands: BTreeSet<String>,
}

/// What is said besides; a dimension of which nothing is said stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Constraints")]
pub struct ConstraintOverrides {
    pub file_system: Option<FileSystemScope>,
    pub network: Option<NetworkMode>,
    pub git: Option<GitAccess>,
    pub code_execution: Option<CodeIsolation>,
    pub terminal: Option<TerminalAccess>,
    pub requires_approval: Option<BTreeSet<ActionType>>,
    pub network_allowlist: Option<Vec<NetworkPlace>>,
    pub commands: Option<BTreeSet<String>>,
}

// === impl Constraints ===

impl Constraints {
    /// The same, with what is said besides.
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
