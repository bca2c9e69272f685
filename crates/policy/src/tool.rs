//! Which tools an agent may call. One function answers whoever lists them and whoever calls one.
//!
//! ```text
//! kind of agent ─► never? ─► its list ─► the tool's scope ─► enabled? ─► what it takes ─► the agent's own rules ─► Permitted
//!                    └──────────┴──────────────┴───────────────┴──────────────┴───────────────────┴──────────────► Denied
//! ```

mod lists;
mod pattern;

pub use pattern::{InvalidPatternError, ToolPattern};

use belljar_contract::tool::{AgentKind, ToolName, ToolScope};
use std::fmt;

/// What a decision needs to know of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its name.
    pub name: &'a ToolName,
    /// For whom it is.
    pub scope: ToolScope,
    /// Whether whoever runs the gateway has left it on.
    pub is_enabled: bool,
    /// Whether it is of another server, and comes by its scope alone.
    pub is_installed: bool,
    /// Whether calls of it leave the host.
    pub reaches_out: bool,
    /// Whether calls of it are known to change nothing.
    pub is_read_only: bool,
}

/// What an agent has been given besides its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolGrants {
    /// Whether what it does may leave the host.
    pub may_reach_out: bool,
    /// Tools that it may call, if not all of its kind's.
    pub only: Option<Vec<ToolPattern>>,
    /// Tools that it may not call, whatever else is said.
    pub not: Vec<ToolPattern>,
}

/// A call that may be made. It can't be made outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted {
    name: ToolName,
}

/// One that may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} agents may not call this tool: {reason}")]
pub struct Denied {
    /// As what was asked.
    pub kind: AgentKind,
    /// Why.
    pub reason: DenyReason,
}

/// Why a tool may not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DenyReason {
    /// Whatever is configured, such agents never get it.
    Never,
    /// It is not among the tools of such agents.
    NotListed,
    /// It is meant for others.
    OtherScope,
    /// It is of another server and not known to only read, and such agents only read.
    NotReadOnly,
    /// It is switched off.
    Disabled,
    /// It reaches out, and this agent may not.
    NoReach,
    /// A rule of this agent is against it, or none for it.
    ByRule,
}

/// Decides whether an agent may call that tool.
///
/// # Errors
/// [`Denied`] with the first reason there is.
pub fn decide(kind: AgentKind, tool: &Facts<'_>, grants: &ToolGrants) -> Result<Permitted, Denied> {
    let name = tool.name.as_str();
    let is_by_rule = || {
        let matches = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(tool.name));
        matches(&grants.not) || grants.only.as_deref().is_some_and(|only| !matches(only))
    };
    let against = [
        (DenyReason::Never, lists::is_never(kind, name)),
        (DenyReason::NotListed, !tool.is_installed && !lists::is_listed(kind, name)),
        (DenyReason::OtherScope, !tool.scope.is_for(kind)),
        (
            DenyReason::NotReadOnly,
            kind == AgentKind::ProjectAnalyst && tool.is_installed && !tool.is_read_only,
        ),
        (DenyReason::Disabled, !tool.is_enabled),
        (DenyReason::NoReach, tool.reaches_out && !grants.may_reach_out),
        (DenyReason::ByRule, is_by_rule()),
    ];
    match against.into_iter().find(|(_, holds)| *holds) {
        Some((reason, _)) => Err(Denied { kind, reason }),
        None => Ok(Permitted { name: tool.name.clone() }),
    }
}

// === impl Permitted ===

impl Permitted {
    /// The tool that may be called.
    pub fn name(&self) -> &ToolName {
        &self.name
    }
}

// === impl DenyReason ===

impl DenyReason {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [Self; 7] = [
        Self::Never,
        Self::NotListed,
        Self::OtherScope,
        Self::NotReadOnly,
        Self::Disabled,
        Self::NoReach,
        Self::ByRule,
    ];

    /// Its name in the audit.
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

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "it is never for them",
            Self::NotListed => "it is not among theirs",
            Self::OtherScope => "it is meant for others",
            Self::NotReadOnly => {
                "its server doesn't say that it only reads (`readOnlyHint`), and they only read"
            }
            Self::Disabled => "it is switched off",
            Self::NoReach => "what they do stays on this host",
            Self::ByRule => "a rule of theirs is against it",
        })
    }
}

#[cfg(test)]
mod tests;
