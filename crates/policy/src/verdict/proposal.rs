//! The least that would have to be given so that a call is done.

use crate::constraint::Dimension;
use belljar_contract::tool::ToolName;

/// Such a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// A yes to this call, with these arguments, once.
    Call,
    /// Another value in one dimension: a sandbox with less would not let it be done, whatever anybody says.
    Constraint {
        /// The dimension.
        dimension: Dimension,
        /// The value.
        value: &'static str,
    },
}

// === impl Proposal ===

impl Proposal {
    /// Its name in records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Constraint { .. } => "constraint",
        }
    }

    /// What a configuration would say so that such calls are done from then on.
    pub fn in_configuration(&self, agent: &str, tool: &ToolName) -> String {
        match self {
            Self::Call => format!("tool_access: {{agents: [{{name: {agent}, allowed: [{tool}]}}]}}"),
            Self::Constraint { dimension, value } => {
                format!(
                    "tool_access: {{agents: [{{name: {agent}, sub_constraints: {{{dimension}: {value}}}}}]}}"
                )
            }
        }
    }
}
