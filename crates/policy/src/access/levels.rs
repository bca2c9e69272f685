//! Access levels: the categories of tools and the constraints of each.

use super::commands;
use super::constraints::Constraints;
use belljar_contract::access::{
    AccessLevel, CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess,
};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use std::collections::BTreeSet;

/// Rules of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelRules {
    /// Purpose of the level, for users.
    pub description: String,
    /// Categories whose tools may be called.
    pub categories: BTreeSet<Category>,
    /// Constraints of their calls.
    pub constraints: Constraints,
}

/// Rules of all levels.
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
    /// Returns the rules of that level.
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
    /// Returns the levels of the contract (`docs/contracts/tools.md#t16`).
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
        let asks = [BuiltInAction::DeployStaging, BuiltInAction::DeployProduction, BuiltInAction::DbMutate];
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
            // `custom` allows only what is configured for the agent.
            custom: rules("What is said of the agent, and nothing else.", &[], least),
        }
    }
}
