//! Permissions of agents under access rules. They are evaluated at each call, so changes take effect at once, also for agents
//! that are at work.
//!
//! ```text
//! configured rules ───┐
//! earned trust ───────┼─► Access::standing ─► Judged ─┬─► allow
//! caller ─────────────┘                               ├─► deny, with the minimal change that would allow it
//!                                                     └─► escalate ─► an approval, or deny without an approver
//! ```

mod approver;
mod earned_trust;
mod rule_based;
mod scope;
mod trust_records;

pub use approver::{Approver, ApproverError, ExactCall};
pub use earned_trust::TrustFollower;
pub use rule_based::RuleBasedAccess;
pub use scope::ScopeSource;
pub(crate) use scope::{of_call, of_place};
pub use trust_records::TrustRecords;

use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{JudgementRecord, ToolName};
use belljar_policy::access::{AccessRules, AgentAuthority};
use belljar_policy::autonomy::AutonomyLevel;
use belljar_policy::constraint::ExecutionLocation;
use belljar_policy::permission::ToolFacts;
use belljar_policy::verdict::{ConfigurationChange, JudgedCall, Proposal, Rule, Verdict};
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::definition::Definition;
use std::fmt::Debug;
use std::sync::Arc;

/// Source of agents' permissions.
pub trait Access: Debug + Send + Sync {
    /// Returns the caller's current standing; `None` if the caller has neither an agent nor a level.
    fn standing(&self, caller: &Caller) -> Option<Arc<AccessStanding>>;

    /// Returns where tools of that category run.
    fn works_in(&self, category: Category) -> ExecutionLocation;
}

/// Standing of an agent under access rules.
#[derive(Debug)]
pub struct AccessStanding {
    /// The rules.
    pub rules: Arc<AccessRules>,
    /// The agent's permissions under them.
    pub agent: AgentAuthority,
    /// Identifies the rules and the agent's trust: the first digits of a digest.
    pub generation: String,
}

/// A call and its judgement.
#[derive(Debug)]
pub(crate) struct CallJudgement {
    pub(crate) judged: JudgedCall,
    pub(crate) record: JudgementRecord,
    pub(crate) autonomy: AutonomyLevel,
    /// Name of the agent, for proposals.
    agent: String,
}

// === impl CallJudgement ===

impl CallJudgement {
    /// Judges a call of that tool.
    pub(crate) fn judge(access: &dyn Access, caller: &Caller, definition: &Definition) -> Option<Self> {
        let stood = access.standing(caller)?;
        let facts = facts(definition);
        let judged = stood.rules.judging(&stood.agent).judge(&facts, access.works_in(definition.category));
        let agent = agent_of(caller).map_or_else(|| "NAME".to_owned(), ToString::to_string);
        let permissions = &stood.agent.permissions;
        let proposal = judged.proposal.as_ref().map(|least| least.in_configuration(&agent, &definition.name));
        let record = JudgementRecord {
            agent_id: agent_of(caller).cloned(),
            level: permissions.level_for(definition.category),
            category: definition.category,
            action_type: definition.action.clone(),
            risk: judged.risk,
            reaches_out: definition.reaches_out,
            rule: judged.rule.code(),
            reason: judged.rule.to_string(),
            generation: stood.generation.clone(),
            proposal,
            approval_id: None,
            secrets_found: None,
        };
        let autonomy = stood.agent.autonomy.level();
        Some(Self { judged, record, autonomy, agent })
    }

    /// Escalates a call because the tool itself requires an approval; `change` is the configuration that would make it
    /// unnecessary.
    pub(crate) fn asked_by_tool(&mut self, change: String, tool: &ToolName) {
        let proposal = Proposal::Call(ConfigurationChange::elsewhere(change));
        self.record.proposal = Some(proposal.in_configuration(&self.agent, tool));
        (self.record.rule, self.record.reason) = (Rule::Tool.code(), Rule::Tool.to_string());
        (self.judged.verdict, self.judged.rule) = (Verdict::Escalate, Rule::Tool);
        self.judged.proposal = Some(proposal);
    }

    /// Returns true if an approval of this call would suffice.
    pub(crate) fn can_be_approved(&self) -> bool {
        matches!(self.judged.proposal, Some(Proposal::Call(_)))
    }

    /// Returns true if the call requires an approval.
    pub(crate) fn escalates(&self) -> bool {
        self.judged.verdict == Verdict::Escalate
    }

    /// Returns the explanation for the caller: the rule, and what would permit the call. It offers an approval of this one call
    /// if an approver is available.
    pub(crate) fn explained(&self, decision: &uuid::Uuid, can_ask: bool) -> String {
        let why = format!("{} (rule {}, decision {decision})", self.judged.rule, self.judged.rule.code());
        match (&self.judged.proposal, &self.record.proposal) {
            (Some(Proposal::Call(_)), Some(lasting)) if can_ask => format!(
                "{why}. A person can approve this one call: request that by `request_human_approval` with this decision. \
                 For all such calls of {}: {lasting}",
                self.agent
            ),
            (Some(_), Some(lasting)) => {
                format!("{why}. The smallest configuration change that would allow it: {lasting}")
            }
            _ => format!("{why}. No approval or configuration change is available"),
        }
    }
}

/// Returns true if the tool is listed for that caller.
pub(crate) fn shows(access: &dyn Access, caller: &Caller, definition: &Definition) -> bool {
    let Some(stood) = access.standing(caller) else { return true };
    let works_in = access.works_in(definition.category);
    stood.rules.judging(&stood.agent).shows(&facts(definition), works_in)
}

fn facts(definition: &Definition) -> ToolFacts<'_> {
    ToolFacts {
        name: &definition.name,
        category: definition.category,
        action: &definition.action,
        reaches_out: definition.reaches_out,
    }
}

fn agent_of(caller: &Caller) -> Option<&AgentId> {
    match caller.identity.as_ref()? {
        Identity::Agent(agent) => Some(agent),
        Identity::Level(_) => None,
    }
}
