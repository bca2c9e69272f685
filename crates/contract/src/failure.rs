//! Failure codes of jobs: one stable code each (`docs/contracts/job.md#j12`; those after it are ours).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The codes, as they are written in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The job is malformed: unknown, missing or mistyped members, or an unsupported version. No step ran.
    SchemaValidation,
    /// The job needs an external destination that it may not or can't reach.
    ExtNetRequired,
    /// A step failed by itself: non-zero exit code, signal, missing file, a diff that doesn't apply.
    StepFailed,
    /// The job or a step ran longer than allowed.
    Timeout,
    /// A limit of the job was exceeded, such as `max_output_bytes`.
    ConstraintViolation,
    /// A path, a diff or a command was refused: it leaves the workspace, or an allowlist doesn't name it.
    PolicyViolation,
    /// The runner was asked to stop.
    Canceled,
    /// The runner or the node died under the job.
    NodeFailure,
    /// No model of the job could be reached.
    InferenceUnavailable,
    /// The job's model budget is used up.
    BudgetExhausted,
    /// The agent has used its maximum number of turns without being done.
    TurnsExhausted,
    /// An acceptance criterion doesn't hold, or could not be checked.
    NotVerified,
    /// The agent reports that it can't do its task.
    AgentGaveUp,
    /// A fault of ours.
    InternalError,
}

// === impl FailureCode ===

impl FailureCode {
    /// All codes: those of the specification in its order, then ours.
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
    fn failure_code_text_matches_serialized_form() {
        for code in FailureCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
