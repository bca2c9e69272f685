//! The levels: which categories of tools each has, and what holds for them.

use super::commands;
use super::constraints::Constraints;
use belljar_contract::access::{
    AccessLevel, CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess,
};
use belljar_contract::action::{ActionType, Leaf};
use belljar_contract::category::Category;
use std::collections::BTreeSet;

/// What a level allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelRules {
    /// What it is for, for people.
    pub description: String,
    /// The categories whose tools may be called.
    pub categories: BTreeSet<Category>,
    /// What holds for their calls.
    pub constraints: Constraints,
}

/// What each level allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    sandboxed: LevelRules,
    restricted: LevelRules,
    standard: LevelRules,
    elevated: LevelRules,
    custom: LevelRules,
}

const SANDBOXED: &[Category] =
    &[Category::FileSystem, Category::CodeExecution, Category::VersionControl, Category::Memory];
const RESTRICTED: &[Category] = &[Category::Web];
const STANDARD: &[Category] = &[Category::Terminal, Category::Analytics, Category::Browser];

// === impl Levels ===

impl Levels {
    /// What that level allows.
    pub fn of(&self, level: AccessLevel) -> &LevelRules {
        match level {
            AccessLevel::Sandboxed => &self.sandboxed,
            AccessLevel::Restricted => &self.restricted,
            AccessLevel::Standard => &self.standard,
            AccessLevel::Elevated => &self.elevated,
            AccessLevel::Custom => &self.custom,
        }
    }

    pub(super) fn of_mut(&mut self, level: AccessLevel) -> &mut LevelRules {
        match level {
            AccessLevel::Sandboxed => &mut self.sandboxed,
            AccessLevel::Restricted => &mut self.restricted,
            AccessLevel::Standard => &mut self.standard,
            AccessLevel::Elevated => &mut self.elevated,
            AccessLevel::Custom => &mut self.custom,
        }
    }
}

impl Default for Levels {
    /// Those of `spec/3`.
    fn default() -> Self {
        let least = Constraints {
            file_system: FileSystemScope::WorkspaceOnly,
            network: NetworkMode::None,
            git: GitAccess::LocalOnly,
            code_execution: CodeIsolation::Containerized,
            terminal: TerminalAccess::None,
            requires_approval: BTreeSet::new(),
            network_allowlist: Vec::new(),
            commands: commands::usual(),
        };
        let rules = |description: &str, categories: &[&[Category]], constraints: Constraints| LevelRules {
            description: description.to_owned(),
            categories: categories.concat().into_iter().collect(),
            constraints,
        };
        let asks = [Leaf::DeployStaging, Leaf::DeployProduction, Leaf::DbMutate];
        let restricted = Constraints {
            file_system: FileSystemScope::ProjectDirectory,
            network: NetworkMode::AllowlistOnly,
            git: GitAccess::ReadAndBranch,
            requires_approval: asks.into_iter().map(ActionType::from).collect(),
            ..least.clone()
        };
        let standard = Constraints {
            file_system: FileSystemScope::ProjectDirectory,
            network: NetworkMode::Open,
            git: GitAccess::Full,
            terminal: TerminalAccess::RestrictedCommands,
            ..least.clone()
        };
        let elevated = Constraints {
            file_system: FileSystemScope::Full,
            terminal: TerminalAccess::Full,
            ..standard.clone()
        };
        Self {
            sandboxed: rules("No external access. Isolated workspace.", &[SANDBOXED], least.clone()),
            restricted: rules("Limited external access with approval.", &[SANDBOXED, RESTRICTED], restricted),
            standard: rules("Normal development access.", &[SANDBOXED, RESTRICTED, STANDARD], standard),
            elevated: rules("Full access for senior and trusted agents.", &[&Category::ALL], elevated),
            // Nothing is allowed of which nothing is said.
            custom: rules("What is said of the agent, and nothing else.", &[], least),
        }
    }
}
