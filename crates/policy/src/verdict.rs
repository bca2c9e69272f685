//! Decision about a call: allow, deny, or ask a user. One function decides, and returns the rule.
//!
//! ```text
//! permission ─► constraints ─► requires_approval? ─► autonomy ─► Allow
//!     └─────────────┴──► Deny          └────────────────┴──────► Escalate
//! ```

mod proposal;
mod rule;

pub use proposal::{ConfigurationChange, Proposal};
pub use rule::Rule;

use crate::action::ActionRegistry;
use crate::autonomy::Autonomy;
use crate::constraint::{self, ExecutionLocation};
use crate::permission::{PermissionDenial, Permissions, ToolFacts};
use belljar_contract::action::Risk;
use serde::Serialize;

/// Decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// A user is asked.
    Escalate,
    /// The call is denied.
    Deny,
}

/// Decision with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall {
    /// The decision.
    pub verdict: Verdict,
    /// Rule that decided.
    pub rule: Rule,
    /// Risk of the action.
    pub risk: Risk,
    /// Smallest grant that would allow the call; `None` if there is none.
    pub proposal: Option<Proposal>,
}

/// Facts that calls of an agent are judged by.
#[derive(Debug, Clone, Copy)]
pub struct JudgementContext<'a> {
    /// Known actions.
    pub actions: &'a ActionRegistry,
    /// Permissions of the agent.
    pub permissions: &'a Permissions,
    /// Actions that require an approval.
    pub autonomy: &'a Autonomy,
}

// === impl Verdict ===

impl Verdict {
    /// Returns the name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Escalate => "escalate",
            Self::Deny => "deny",
        }
    }
}

// === impl JudgementContext ===

impl JudgementContext<'_> {
    /// Judges a call of a tool that runs in `works_in`.
    pub fn judge(&self, tool: &ToolFacts<'_>, works_in: ExecutionLocation) -> JudgedCall {
        let risk = self.actions.risk(tool.action);
        let judged = |verdict, rule, proposal| JudgedCall { verdict, rule, risk, proposal };
        let basis = self.permissions.check(tool);
        if let Err(PermissionDenial::Denied) = basis {
            return judged(Verdict::Deny, Rule::DeniedList, None);
        }
        let constraints = self.permissions.constraints_for(tool.category);
        if let Err(violation) = constraint::check(constraints, tool, works_in) {
            let proposal = Proposal::Constraint { dimension: violation.dimension, value: violation.enough };
            return judged(Verdict::Deny, Rule::Constraint(violation), Some(proposal));
        }
        let basis = match basis {
            Ok(basis) => basis,
            // A user may approve the single call: its sandbox would allow it.
            Err(PermissionDenial::Category { level, category }) => {
                let lasting = ConfigurationChange { allows_tool: true, ..self.lasting(tool) };
                return judged(Verdict::Deny, Rule::Level { level, category }, Some(Proposal::Call(lasting)));
            }
            Err(PermissionDenial::Denied) => return judged(Verdict::Deny, Rule::DeniedList, None),
        };
        if constraint::takes_approval(constraints, tool) {
            let proposal = Proposal::Call(self.lasting(tool));
            return judged(Verdict::Escalate, Rule::RequiresApproval, Some(proposal));
        }
        if basis != crate::permission::PermissionBasis::Discovery && self.autonomy.asks(tool.action) {
            let (level, asked_by) = (self.autonomy.level(), self.autonomy.asked_by(tool.action));
            let proposal = Proposal::Call(self.lasting(tool));
            return judged(Verdict::Escalate, Rule::Autonomy { level, asked_by }, Some(proposal));
        }
        judged(Verdict::Allow, Rule::Permitted(basis), None)
    }

    /// Returns the changes that would end approval requests for calls of a tool: in the level's list, and in the autonomy.
    fn lasting(&self, tool: &ToolFacts<'_>) -> ConfigurationChange {
        let constraints = self.permissions.constraints_for(tool.category);
        let required = &constraints.requires_approval;
        let left = required
            .contains(tool.action)
            .then(|| required.iter().filter(|action| *action != tool.action).cloned().collect());
        let lasting = ConfigurationChange { requires_approval: left, ..ConfigurationChange::default() };
        match self.autonomy.asks(tool.action) {
            true => lasting.for_autonomy(self.autonomy, tool.action),
            false => lasting,
        }
    }

    /// Returns true if the tool is shown to the agent: its calls are allowed or can be approved.
    pub fn shows(&self, tool: &ToolFacts<'_>, works_in: ExecutionLocation) -> bool {
        self.judge(tool, works_in).verdict != Verdict::Deny
    }
}

#[cfg(test)]
mod tests;
