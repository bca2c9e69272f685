//! Tools: their names, their audience, and their answers.

mod envelope;
mod name;
mod record;

pub use envelope::{DomainCode, Envelope, Pagination, RedactionReport};
pub use name::{InvalidToolNameError, ToolName};
pub use record::{
    JudgementRecord, TOOL_BEGUN, TOOL_CALLED, ToolCallRecord, ToolDecision, ToolStatus, ToolSubject,
};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Audience of a tool (`docs/contracts/job.md#j14.5`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolScope {
    /// Agents in sandboxes.
    Sandbox,
    /// Agents that plan and dispatch.
    Pm,
    /// Both kinds of agents.
    Both,
}

/// Kind of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// An agent in a sandbox, at work on one job.
    Sandbox,
    /// An agent that plans tasks and dispatches jobs.
    ProjectManager,
    /// An agent that analyses completed work for a user.
    ProjectAnalyst,
    /// The owner of the machine, through a client.
    Operator,
}

/// Approximate cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostTier {
    /// Negligible cost.
    Cheap,
    /// A file or a request more.
    Moderate,
    /// Minutes of time, or money.
    Expensive,
}

// === impl ToolScope ===

impl ToolScope {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("sandbox", Self::Sandbox), ("pm", Self::Pm), ("both", Self::Both)];

    /// Returns true if the tool is offered to agents of that kind.
    pub const fn is_for(self, kind: AgentKind) -> bool {
        match kind {
            AgentKind::Sandbox => matches!(self, Self::Sandbox | Self::Both),
            AgentKind::ProjectManager | AgentKind::ProjectAnalyst => matches!(self, Self::Pm | Self::Both),
            AgentKind::Operator => true,
        }
    }
}

// === impl AgentKind ===

impl AgentKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sandbox, Self::ProjectManager, Self::ProjectAnalyst, Self::Operator];

    /// Its name on the wire and in the audit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::ProjectManager => "project_manager",
            Self::ProjectAnalyst => "project_analyst",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl CostTier ===

impl CostTier {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cheap => "cheap",
            Self::Moderate => "moderate",
            Self::Expensive => "expensive",
        }
    }
}
