//! What holds for the calls of an agent that may call a tool at all: the first dimension that is against one, and what a person has to say yes
//! to.
//!
//! The same dimensions hold in the sandboxes in which tools work ([`crate::access::compiled`]); what is said here comes sooner, and says why.

use crate::access::Constraints;
use crate::permission::ToolFacts;
use belljar_contract::access::{CodeIsolation, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::action::Leaf;
use belljar_contract::category::Category;
use serde::Serialize;
use std::fmt;

/// A dimension.
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

/// A call that a constraint is against.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{dimension} is {found}, and this tool {does}")]
pub struct Violation {
    /// In which dimension.
    pub dimension: Dimension,
    /// What holds there.
    pub found: &'static str,
    /// What the tool does that this is against.
    pub does: &'static str,
    /// What would have to hold there at least.
    pub enough: &'static str,
}

/// Where tools of a category work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorksIn {
    /// In a root and with a network of its own.
    Container,
    /// In a process of the host, walled in.
    Process,
    /// Nowhere: the host itself does what the tool is for.
    Host,
}

/// Which tool clones, and which pushes: what they do is git's, whatever their action is called.
const CLONES: &str = "git_clone";
const PUSHES: &str = "git_push";

/// The first dimension that is against calling that tool.
///
/// # Errors
/// [`Violation`].
pub fn check(constraints: &Constraints, tool: &ToolFacts<'_>, works_in: WorksIn) -> Result<(), Violation> {
    network(constraints, tool)?;
    terminal(constraints, tool)?;
    git(constraints, tool)?;
    isolation(constraints, tool, works_in)
}

/// Whether a person has to say yes to it.
pub fn takes_approval(constraints: &Constraints, tool: &ToolFacts<'_>) -> bool {
    constraints.requires_approval.contains(tool.action)
}

fn network(constraints: &Constraints, tool: &ToolFacts<'_>) -> Result<(), Violation> {
    let name = tool.name.as_str();
    let leaves = tool.reaches_out
        || name == CLONES
        || name == PUSHES
        || matches!(tool.category, Category::Web if *tool.action != Leaf::CodeRead.into())
        || [Leaf::CommsExternal, Leaf::ExternalDataRequest, Leaf::VcsPush]
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
    let pushes = *tool.action == Leaf::VcsPush.into() || name == PUSHES;
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

fn isolation(constraints: &Constraints, tool: &ToolFacts<'_>, works_in: WorksIn) -> Result<(), Violation> {
    let runs_code = matches!(tool.category, Category::CodeExecution | Category::Terminal);
    let is_weaker = works_in != WorksIn::Container;
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FileSystem, Self::Network, Self::Git, Self::CodeExecution, Self::Terminal, Self::Approval];

    /// Its name in configurations and records.
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
