//! What becomes of a call: done, refused, or put before a person. One function decides, and says by which rule.
//!
//! ```text
//! permission ─► constraints ─► requires_approval? ─► autonomy ─► Allow
//!     └─────────────┴──► Deny          └────────────────┴──────► Escalate
//! ```

mod proposal;
mod rule;

pub use proposal::{Lasting, Proposal};
pub use rule::Rule;

use crate::action::ActionRegistry;
use crate::autonomy::Autonomy;
use crate::constraint::{self, WorksIn};
use crate::permission::{Lacking, Permissions, ToolFacts};
use belljar_contract::action::Risk;
use serde::Serialize;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is done.
    Allow,
    /// A person is asked.
    Escalate,
    /// It is not.
    Deny,
}

/// A verdict, and what it was reached by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// What becomes of it.
    pub verdict: Verdict,
    /// By which rule.
    pub rule: Rule,
    /// How much may go wrong by it.
    pub risk: Risk,
    /// The least that would have to be given so that it is done; nothing where nothing can be.
    pub proposal: Option<Proposal>,
}

/// By what a call is judged.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// Which actions there are.
    pub actions: &'a ActionRegistry,
    /// What the agent may do.
    pub permissions: &'a Permissions,
    /// What of it takes a yes.
    pub autonomy: &'a Autonomy,
}

// === impl Verdict ===

impl Verdict {
    /// Its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Escalate => "escalate",
            Self::Deny => "deny",
        }
    }
}

// === impl Standing ===

impl Standing<'_> {
    /// Judges a call of that tool, which works there.
    pub fn judge(&self, tool: &ToolFacts<'_>, works_in: WorksIn) -> Judged {
        let risk = self.actions.risk(tool.action);
        let judged = |verdict, rule, proposal| Judged { verdict, rule, risk, proposal };
        let basis = self.permissions.check(tool);
        if let Err(Lacking::Denied) = basis {
            return judged(Verdict::Deny, Rule::DeniedList, None);
        }
        let constraints = self.permissions.constraints_for(tool.category);
        if let Err(violation) = constraint::check(constraints, tool, works_in) {
            let proposal = Proposal::Constraint { dimension: violation.dimension, value: violation.enough };
            return judged(Verdict::Deny, Rule::Constraint(violation), Some(proposal));
        }
        let basis = match basis {
            Ok(basis) => basis,
            // A person may say yes to the one call: its sandbox would let it be done.
            Err(Lacking::Category { level, category }) => {
                let lasting = Lasting { allows_tool: true, ..self.lasting(tool) };
                return judged(Verdict::Deny, Rule::Level { level, category }, Some(Proposal::Call(lasting)));
            }
            Err(Lacking::Denied) => return judged(Verdict::Deny, Rule::DeniedList, None),
        };
        if constraint::takes_approval(constraints, tool) {
            let proposal = Proposal::Call(self.lasting(tool));
            return judged(Verdict::Escalate, Rule::RequiresApproval, Some(proposal));
        }
        if basis != crate::permission::Basis::Discovery && self.autonomy.asks(tool.action) {
            let (level, asked_by) = (self.autonomy.level(), self.autonomy.asked_by(tool.action));
            let proposal = Proposal::Call(self.lasting(tool));
            return judged(Verdict::Escalate, Rule::Autonomy { level, asked_by }, Some(proposal));
        }
        judged(Verdict::Allow, Rule::Permitted(basis), None)
    }

    /// What would keep calls of a tool from being asked about: by the level's list, and by the autonomy.
    fn lasting(&self, tool: &ToolFacts<'_>) -> Lasting {
        let constraints = self.permissions.constraints_for(tool.category);
        let required = &constraints.requires_approval;
        let left = required
            .contains(tool.action)
            .then(|| required.iter().filter(|action| *action != tool.action).cloned().collect());
        let lasting = Lasting { requires_approval: left, ..Lasting::default() };
        match self.autonomy.asks(tool.action) {
            true => lasting.for_autonomy(self.autonomy, tool.action),
            false => lasting,
        }
    }

    /// Whether the tool is shown to the agent: one that it may call, or may ask to.
    pub fn shows(&self, tool: &ToolFacts<'_>, works_in: WorksIn) -> bool {
        self.judge(tool, works_in).verdict != Verdict::Deny
    }
}

#[cfg(test)]
mod tests;
