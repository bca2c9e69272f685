//! Decides which tools an agent may call. The same function decides about listing and about calls.
//!
//! ```text
//! kind of agent ─► never? ─► its list ─► the tool's scope ─► enabled? ─► external call ─► the agent's own rules ─► Permitted
//!                    └──────────┴──────────────┴───────────────┴──────────────┴───────────────────┴──────────────► Denied
//! ```

mod lists;
mod pattern;

pub use pattern::{InvalidPatternError, ToolPattern};

use belljar_contract::tool::{AgentKind, ToolName, ToolScope};
use std::fmt;

/// Facts about a tool that a decision needs.
#[derive(Debug, Clone, Copy)]
pub struct ToolTraits<'a> {
    /// Name of the tool.
    pub name: &'a ToolName,
    /// Agents that the tool is for.
    pub scope: ToolScope,
    /// True if the operator of the gateway has not disabled it.
    pub is_enabled: bool,
    /// True if it belongs to another server and is available by its scope alone.
    pub is_installed: bool,
    /// True if its calls leave the host.
    pub reaches_out: bool,
    /// True if its calls are known to change nothing.
    pub is_read_only: bool,
}

/// Grants of an agent besides those of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolGrants {
    /// True if its calls may leave the host.
    pub may_reach_out: bool,
    /// Tools that it may call, if not all of its kind's.
    pub only: Option<Vec<ToolPattern>>,
    /// Tools that it may never call.
    pub not: Vec<ToolPattern>,
}

/// Call that may be made. It can't be created outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittedCall {
    name: ToolName,
}

/// Call that may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} agents may not call this tool: {reason}")]
pub struct DeniedCall {
    /// Kind of the agent.
    pub kind: AgentKind,
    /// Reason.
    pub reason: ToolDenyReason,
}

/// Reason why a tool may not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolDenyReason {
    /// Agents of this kind never get the tool, whatever is configured.
    Never,
    /// The tool is not in the list of the agent's kind.
    NotListed,
    /// The tool has another scope.
    OtherScope,
    /// The tool belongs to another server and is not known to be read-only, and agents of this kind may only read.
    NotReadOnly,
    /// The tool is disabled.
    Disabled,
    /// The tool leaves the host, and this agent may not.
    NoReach,
    /// A rule of this agent denies the tool, or none allows it.
    ByRule,
}

/// Decides whether an agent may call that tool.
///
/// # Errors
/// [`DeniedCall`], with the first reason.
pub fn decide(
    kind: AgentKind,
    tool: &ToolTraits<'_>,
    grants: &ToolGrants,
) -> Result<PermittedCall, DeniedCall> {
    let name = tool.name.as_str();
    let is_by_rule = || {
        let matches = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(tool.name));
        matches(&grants.not) || grants.only.as_deref().is_some_and(|only| !matches(only))
    };
    let against = [
        (ToolDenyReason::Never, lists::is_never(kind, name)),
        (ToolDenyReason::NotListed, !tool.is_installed && !lists::is_listed(kind, name)),
        (ToolDenyReason::OtherScope, !tool.scope.is_for(kind)),
        (
            ToolDenyReason::NotReadOnly,
            kind == AgentKind::ProjectAnalyst && tool.is_installed && !tool.is_read_only,
        ),
        (ToolDenyReason::Disabled, !tool.is_enabled),
        (ToolDenyReason::NoReach, tool.reaches_out && !grants.may_reach_out),
        (ToolDenyReason::ByRule, is_by_rule()),
    ];
    match against.into_iter().find(|(_, holds)| *holds) {
        Some((reason, _)) => Err(DeniedCall { kind, reason }),
        None => Ok(PermittedCall { name: tool.name.clone() }),
    }
}

// === impl PermittedCall ===

impl PermittedCall {
    /// Returns the tool that may be called.
    pub fn name(&self) -> &ToolName {
        &self.name
    }
}

// === impl ToolDenyReason ===

impl ToolDenyReason {
    /// All reasons, in the order in which they are checked.
    pub const ALL: [Self; 7] = [
        Self::Never,
        Self::NotListed,
        Self::OtherScope,
        Self::NotReadOnly,
        Self::Disabled,
        Self::NoReach,
        Self::ByRule,
    ];

    /// Returns the name in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::NotListed => "not_listed",
            Self::OtherScope => "other_scope",
            Self::NotReadOnly => "not_read_only",
            Self::Disabled => "disabled",
            Self::NoReach => "no_reach",
            Self::ByRule => "by_rule",
        }
    }
}

impl fmt::Display for ToolDenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "it is never available to them",
            Self::NotListed => "it is not on their list",
            Self::OtherScope => "it is available to other agents only",
            Self::NotReadOnly => {
                "its server doesn't mark it read-only (`readOnlyHint`), and they may call only read-only tools"
            }
            Self::Disabled => "it is disabled",
            Self::NoReach => "they have no network access",
            Self::ByRule => "one of their own rules denies it",
        })
    }
}

#[cfg(test)]
mod tests;
