//! Smallest grants that would allow a call.

use crate::autonomy::Autonomy;
use crate::constraint::Dimension;
use belljar_contract::action::ActionType;
use belljar_contract::tool::ToolName;
use std::collections::BTreeSet;

/// Grant that would allow a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// A single approval of this call with these arguments, or a lasting change for all such calls.
    Call(ConfigurationChange),
    /// Another value in one dimension: a sandbox with the current one would not allow the call, even if a user approves it.
    Constraint {
        /// The dimension.
        dimension: Dimension,
        /// The value.
        value: &'static str,
    },
}

/// Configuration changes that would allow all such calls without an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationChange {
    /// Add the tool to those that the agent may call.
    pub(super) allows_tool: bool,
    /// Rest of the level's `requires_approval` without the action.
    pub(super) requires_approval: Option<BTreeSet<ActionType>>,
    /// Add the action to those that need no approval.
    pub(super) auto_approve: Option<ActionType>,
    /// Remove the action from these lists.
    pub(super) not_in: Vec<(&'static str, ActionType)>,
    /// The agent had a setback, and no configuration changes that.
    pub(super) is_set_back: bool,
    /// Change elsewhere in the configuration.
    pub(super) elsewhere: Option<String>,
}

// === impl Proposal ===

impl Proposal {
    /// Returns the name in records.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Constraint { .. } => "constraint",
        }
    }

    /// Returns the configuration that would allow such calls from then on.
    pub fn in_configuration(&self, agent: &str, tool: &ToolName) -> String {
        match self {
            Self::Call(lasting) => lasting.in_configuration(agent, tool),
            Self::Constraint { dimension, value } => of_agent(agent, &[of_constraint(dimension, value)]),
        }
    }
}

/// Returns an action as a quoted YAML scalar. Its colon makes that clearer, although quotes are optional.
fn quoted(action: &ActionType) -> String {
    format!("'{action}'")
}

fn of_agent(agent: &str, members: &[String]) -> String {
    format!("tool_access: {{agents: [{{name: {agent}, {}}}]}}", members.join(", "))
}

fn of_constraint(dimension: &dyn std::fmt::Display, value: &str) -> String {
    format!("sub_constraints: {{{dimension}: {value}}}")
}

// === impl ConfigurationChange ===

impl ConfigurationChange {
    /// Returns the change for a tool that itself requires an approval: it is made where the tool is configured.
    pub fn elsewhere(change: String) -> Self {
        Self { elsewhere: Some(change), ..Self::default() }
    }

    /// Adds the changes that end approval requests of the autonomy for an action.
    pub(super) fn for_autonomy(self, autonomy: &Autonomy, action: &ActionType) -> Self {
        let (of_house, of_agent) = autonomy.lists_with(action);
        let lists = [(of_house, "`autonomy.human_approval`"), (of_agent, "the agent's `human_approval`")];
        let not_in = lists.into_iter().filter(|(is_listed, _)| *is_listed);
        let needs_auto_approve = autonomy.needs_auto_approve(action);
        Self {
            auto_approve: needs_auto_approve.then(|| action.clone()),
            not_in: not_in.map(|(_, list)| (list, action.clone())).collect(),
            is_set_back: needs_auto_approve && autonomy.is_set_back(),
            ..self
        }
    }

    fn in_configuration(&self, agent: &str, tool: &ToolName) -> String {
        let allowed = self.allows_tool.then(|| format!("allowed: [{tool}]"));
        let constraint = self.requires_approval.as_ref().map(|left| {
            let left: Vec<String> = left.iter().map(quoted).collect();
            of_constraint(&"requires_approval", &format!("[{}]", left.join(", ")))
        });
        let auto = self.auto_approve.as_ref().filter(|_| !self.is_set_back);
        let auto = auto.map(|action| format!("auto_approve: [{}]", quoted(action)));
        let members: Vec<String> = allowed.into_iter().chain(constraint).chain(auto).collect();
        let own = (!members.is_empty()).then(|| of_agent(agent, &members));
        let lists = self.not_in.iter().map(|(list, action)| format!("no entry of {list} that has {action}"));
        let word = self.is_set_back.then(|| {
            format!("a person's word that ends the setback: `belljar trust set {agent} LEVEL --reason TEXT`")
        });
        let all: Vec<String> =
            own.into_iter().chain(lists).chain(word).chain(self.elsewhere.clone()).collect();
        all.join("; and ")
    }
}
