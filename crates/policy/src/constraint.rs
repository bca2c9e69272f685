//! Checks a call against the constraints of an agent that may call the tool: finds the first dimension that denies it, and
//! whether it requires a user's approval.
//!
//! The sandboxes of tools enforce the same dimensions ([`crate::access::compiled`]). This check comes earlier and gives a
//! reason.

use crate::access::Constraints;
use crate::permission::ToolFacts;
use belljar_contract::access::{CodeIsolation, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::action::BuiltInAction;
use belljar_contract::category::Category;
use serde::Serialize;
use std::fmt;

/// Dimension of constraints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "as in Constraints")]
pub enum Dimension {
    FileSystem,
    Network,
    Git,
    CodeExecution,
    Terminal,
    Approval,
}

/// Call that a constraint denies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{dimension} is {found}, and this tool {does}")]
pub struct Violation {
    /// Dimension of the constraint.
    pub dimension: Dimension,
    /// Value of the constraint.
    pub found: &'static str,
    /// Effect of the tool that the constraint denies.
    pub does: &'static str,
    /// Smallest value that would allow the call.
    pub enough: &'static str,
}

/// Place where the tools of a category run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionLocation {
    /// In a container with its own root and network.
    Container,
    /// In a confined process of the host.
    Process,
    /// On the host itself.
    Host,
}

/// Tools that clone and push: they are git operations, whatever their action is called.
const CLONES: &str = "git_clone";
const PUSHES: &str = "git_push";

/// Checks a call of that tool against each dimension.
///
/// # Errors
/// [`Violation`], for the first dimension that denies it.
pub fn check(
    constraints: &Constraints,
    tool: &ToolFacts<'_>,
    works_in: ExecutionLocation,
) -> Result<(), Violation> {
    network(constraints, tool)?;
    terminal(constraints, tool)?;
    git(constraints, tool)?;
    isolation(constraints, tool, works_in)
}

/// Returns true if the call requires a user's approval.
pub fn takes_approval(constraints: &Constraints, tool: &ToolFacts<'_>) -> bool {
    constraints.requires_approval.contains(tool.action)
}

fn network(constraints: &Constraints, tool: &ToolFacts<'_>) -> Result<(), Violation> {
    let name = tool.name.as_str();
    let leaves = tool.reaches_out
        || name == CLONES
        || name == PUSHES
        || matches!(tool.category, Category::Web if *tool.action != BuiltInAction::CodeRead.into())
        || [BuiltInAction::CommsExternal, BuiltInAction::ExternalDataRequest, BuiltInAction::VcsPush]
            .into_iter()
            .any(|leaf| *tool.action == leaf.into());
    match constraints.network == NetworkMode::None && leaves {
        true => Err(Violation {
            dimension: Dimension::Network,
            found: constraints.network.as_str(),
            does: "leaves the host",
            enough: NetworkMode::AllowlistOnly.as_str(),
        }),
        false => Ok(()),
    }
}

fn terminal(constraints: &Constraints, tool: &ToolFacts<'_>) -> Result<(), Violation> {
    match constraints.terminal == TerminalAccess::None && tool.category == Category::Terminal {
        true => Err(Violation {
            dimension: Dimension::Terminal,
            found: constraints.terminal.as_str(),
            does: "runs commands",
            enough: TerminalAccess::RestrictedCommands.as_str(),
        }),
        false => Ok(()),
    }
}

fn git(constraints: &Constraints, tool: &ToolFacts<'_>) -> Result<(), Violation> {
    let name = tool.name.as_str();
    let pushes = *tool.action == BuiltInAction::VcsPush.into() || name == PUSHES;
    let against = |does, enough: GitAccess| {
        Err(Violation {
            dimension: Dimension::Git,
            found: constraints.git.as_str(),
            does,
            enough: enough.as_str(),
        })
    };
    match constraints.git {
        GitAccess::LocalOnly | GitAccess::ReadAndBranch if pushes => against("pushes", GitAccess::Full),
        GitAccess::LocalOnly if name == CLONES => against("clones", GitAccess::ReadAndBranch),
        _ => Ok(()),
    }
}

fn isolation(
    constraints: &Constraints,
    tool: &ToolFacts<'_>,
    works_in: ExecutionLocation,
) -> Result<(), Violation> {
    let runs_code = matches!(tool.category, Category::CodeExecution | Category::Terminal);
    let is_weaker = works_in != ExecutionLocation::Container;
    match constraints.code_execution == CodeIsolation::Containerized && runs_code && is_weaker {
        true => Err(Violation {
            dimension: Dimension::CodeExecution,
            found: constraints.code_execution.as_str(),
            does: "runs code in something less",
            enough: CodeIsolation::Process.as_str(),
        }),
        false => Ok(()),
    }
}

// === impl Dimension ===

impl Dimension {
    /// All dimensions.
    pub const ALL: [Self; 6] =
        [Self::FileSystem, Self::Network, Self::Git, Self::CodeExecution, Self::Terminal, Self::Approval];

    /// Returns the name in configurations and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileSystem => "file_system",
            Self::Network => "network",
            Self::Git => "git",
            Self::CodeExecution => "code_execution",
            Self::Terminal => "terminal",
            Self::Approval => "approval",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests;
