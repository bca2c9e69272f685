//! Rules by which calls are judged, each with a stable name.

use crate::autonomy::{ApprovalReason, AutonomyLevel};
use crate::constraint::Violation;
use crate::permission::PermissionBasis;
use crate::tool::ToolDenyReason;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use std::fmt;

/// Rule that decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Agents of this kind don't get the tool.
    Kind(ToolDenyReason),
    /// The agent's denylist names the tool.
    DeniedList,
    /// The agent's level doesn't include the tool's category.
    Level {
        /// The level.
        level: AccessLevel,
        /// The category.
        category: Category,
    },
    /// A constraint denies the call.
    Constraint(Violation),
    /// The level or the agent's own rules require an approval.
    RequiresApproval,
    /// The agent's autonomy requires an approval.
    Autonomy {
        /// Level of autonomy.
        level: AutonomyLevel,
        /// Reason.
        asked_by: ApprovalReason,
    },
    /// The tool itself requires an approval for this call.
    Tool,
    /// The call requires an approval, and no approver is available.
    NoApprover,
    /// A user has approved the call.
    Approved,
    /// The call is allowed.
    Permitted(PermissionBasis),
}

// === impl Rule ===

impl Rule {
    /// Returns the name in records.
    pub fn code(&self) -> String {
        match self {
            Self::Kind(reason) => reason.as_str().to_owned(),
            Self::DeniedList => "denied_list".to_owned(),
            Self::Level { level, category } => format!("level:{level}:{category}"),
            Self::Constraint(violation) => {
                format!("constraint:{}:{}", violation.dimension, violation.found)
            }
            Self::RequiresApproval => "requires_approval".to_owned(),
            Self::Autonomy { asked_by: ApprovalReason::House, .. } => "human_approval:house".to_owned(),
            Self::Autonomy { asked_by: ApprovalReason::Agent, .. } => "human_approval:agent".to_owned(),
            Self::Autonomy { level, asked_by: ApprovalReason::Level } => format!("autonomy:{level}"),
            Self::Autonomy { level, asked_by: ApprovalReason::Unlisted } => {
                format!("autonomy:{level}:unlisted")
            }
            Self::Tool => "tool_approval".to_owned(),
            Self::NoApprover => "no_approver".to_owned(),
            Self::Approved => "approved".to_owned(),
            Self::Permitted(PermissionBasis::Allowed) => "allowed_list".to_owned(),
            Self::Permitted(PermissionBasis::Level(level)) => format!("level:{level}"),
            Self::Permitted(PermissionBasis::Discovery) => "discovery".to_owned(),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(reason) => reason.fmt(f),
            Self::DeniedList => f.write_str("the tool is on this agent's denied list"),
            Self::Level { level, category } => {
                write!(f, "access level {level} allows no tools of category {category}")
            }
            Self::Constraint(violation) => violation.fmt(f),
            Self::RequiresApproval => {
                f.write_str("actions of this type require a user's approval at this access level")
            }
            Self::Autonomy { asked_by: ApprovalReason::House, .. } => f.write_str(
                "actions of this type require a user's approval (node list `autonomy.human_approval`)",
            ),
            Self::Autonomy { asked_by: ApprovalReason::Agent, .. } => {
                f.write_str("actions of this type require a user's approval (agent list `human_approval`)")
            }
            Self::Autonomy { level, asked_by: ApprovalReason::Level } => {
                write!(f, "actions of this type require a user's approval at autonomy {level}")
            }
            Self::Autonomy { level, asked_by: ApprovalReason::Unlisted } => {
                write!(f, "no list exempts actions of this type from approval at autonomy {level}")
            }
            Self::Tool => f.write_str("this tool call requires a user's approval"),
            Self::NoApprover => {
                f.write_str("it requires a user's approval, and no approver is available here")
            }
            Self::Approved => f.write_str("a user has approved this call"),
            Self::Permitted(PermissionBasis::Allowed) => {
                f.write_str("the tool is on this agent's allowed list")
            }
            Self::Permitted(PermissionBasis::Level(level)) => write!(f, "access level {level} allows it"),
            Self::Permitted(PermissionBasis::Discovery) => {
                f.write_str("every agent may list the available tools")
            }
        }
    }
}
