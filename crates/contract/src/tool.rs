//! Tools: what one is called, whom it is for, and what it answers.

mod envelope;
mod name;
mod record;

pub use envelope::{DomainCode, Envelope, Pagination, Redacted};
pub use name::{InvalidToolNameError, ToolName};
pub use record::{
    JudgedRecord, TOOL_BEGUN, TOOL_CALLED, ToolCallRecord, ToolDecision, ToolStatus, ToolSubject,
};

use serde::{Deserialize, Serialize};
use std::fmt;

/// For whose agents a tool is (`spec/1 §MCP Tool Access`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolScope {
    /// For those in sandboxes.
    Sandbox,
    /// For those that plan and dispatch.
    Pm,
    /// For either.
    Both,
}

/// As what somebody calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// An agent in a sandbox, at work on one job.
    Sandbox,
    /// One that plans tasks and dispatches jobs.
    ProjectManager,
    /// One that looks into what has been done for somebody.
    ProjectAnalyst,
    /// Whoever owns the machine, by a client of theirs.
    Operator,
}

/// What a call costs, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostTier {
    /// Nothing that anybody would count.
    Cheap,
    /// A file or a request more.
    Moderate,
    /// Minutes, or money.
    Expensive,
}

// === impl ToolScope ===

impl ToolScope {
    /// All of them, by their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("sandbox", Self::Sandbox), ("pm", Self::Pm), ("both", Self::Both)];

    /// Whether agents of that kind are meant.
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
