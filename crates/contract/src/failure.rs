//! Why a job failed: one stable code each (`spec/1 §Canonical Failure Codes`; those after it are ours).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The codes, as they are written in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The job is malformed: unknown, missing or mistyped members, or a version that isn't spoken. No step ran.
    SchemaValidation,
    /// Something outside was needed, and the job may not or can't reach it.
    ExtNetRequired,
    /// A step ended in an error of its own: non-zero exit, signal, no such file, a diff that doesn't apply.
    StepFailed,
    /// The job or a step ran longer than allowed.
    Timeout,
    /// A limit of the job was exceeded, such as `max_output_bytes`.
    ConstraintViolation,
    /// A path, a diff or a command was refused: it leaves the workspace, or an allowlist doesn't name it.
    PolicyViolation,
    /// Somebody asked the runner to stop.
    Canceled,
    /// The runner or the node died under the job.
    NodeFailure,
    /// None of the job's models could be asked.
    InferenceUnavailable,
    /// What the job may spend on models is spent.
    BudgetExhausted,
    /// The agent has had as many answers of models as it may, and wasn't done.
    TurnsExhausted,
    /// An acceptance criterion doesn't hold, or nobody could say whether it does.
    NotVerified,
    /// The agent says that it can't do what it was asked to.
    AgentGaveUp,
    /// A fault of ours.
    InternalError,
}

// === impl FailureCode ===

impl FailureCode {
    /// Every code: those of the specification in its order, then ours.
    pub const ALL: [Self; 14] = [
        Self::SchemaValidation,
        Self::ExtNetRequired,
        Self::StepFailed,
        Self::Timeout,
        Self::ConstraintViolation,
        Self::PolicyViolation,
        Self::Canceled,
        Self::NodeFailure,
        Self::InferenceUnavailable,
        Self::BudgetExhausted,
        Self::TurnsExhausted,
        Self::NotVerified,
        Self::AgentGaveUp,
        Self::InternalError,
    ];

    /// The code as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SchemaValidation => "schema_validation",
            Self::ExtNetRequired => "ext_net_required",
            Self::StepFailed => "step_failed",
            Self::Timeout => "timeout",
            Self::ConstraintViolation => "constraint_violation",
            Self::PolicyViolation => "policy_violation",
            Self::Canceled => "canceled",
            Self::NodeFailure => "node_failure",
            Self::InferenceUnavailable => "inference_unavailable",
            Self::BudgetExhausted => "budget_exhausted",
            Self::TurnsExhausted => "turns_exhausted",
            Self::NotVerified => "not_verified",
            Self::AgentGaveUp => "agent_gave_up",
            Self::InternalError => "internal_error",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_same_in_text_and_on_the_wire() {
        for code in FailureCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
